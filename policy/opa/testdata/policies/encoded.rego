package verbgate.gate

default decision := false

decision if json.unmarshal(input.params.s).a == 1

decision if yaml.unmarshal(input.params.s)[0] == 1

decision if base64.decode(input.params.s) == "x"

decision if io.jwt.decode(input.params.s)[1].sub == "ada"

decision if json.marshal(input.params) == input.params.s

decision if crypto.sha256(input.params.s) == urlquery.encode_object(input.params)
