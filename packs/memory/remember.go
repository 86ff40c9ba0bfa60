package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/verbgate/verbgate/packs"
)

// remember keeps a memory.
func (m *memories) remember(ctx context.Context, call *packs.Call) (any, error) {
	one, err := readMemory(call)
	if err != nil {
		return nil, err
	}
	// Before the transaction: the nested call may well write, and there is one writer.
	if call.Params.Has("about") {
		if one.About, err = getAbout(ctx, call); err != nil {
			return nil, err
		}
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("make an id: %w", err)
	}
	one.ID = id.String()
	tags, err := json.Marshal(one.Tags)
	if err != nil {
		return nil, err
	}
	err = m.store.Write(ctx, func(tx *sql.Tx) error {
		about := sql.NullString{String: one.About, Valid: one.About != ""}
		result, err := tx.ExecContext(ctx, "INSERT INTO memory_records (id, namespace, created, salience, about, tags, content) VALUES (?, ?, ?, ?, ?, ?, ?)",
			one.ID, one.Namespace, call.Time.UnixMicro(), one.Salience, about, string(tags), one.Content)
		if err != nil {
			return err
		}
		seq, err := result.LastInsertId()
		if err != nil {
			return err
		}
		for _, tag := range one.Tags {
			if _, err := tx.ExecContext(ctx, "INSERT INTO memory_tags (tag, record) VALUES (?, ?)", tag, seq); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO memory_words (rowid, content, tags) VALUES (?, ?, ?)",
			seq, spread(one.Content), spread(strings.Join(one.Tags, " ")))
		return err
	})
	if err != nil {
		return nil, err
	}
	return one, call.Emit(topicRemembered, event{ID: one.ID, About: one.About})
}

// readMemory reads all params but about. The manifest and the checks have been there before; a handler
// still writes nothing it would not accept.
func readMemory(call *packs.Call) (memory, error) {
	p := call.Params
	one := memory{
		Content: p.String("content"), Tags: []string{}, Salience: defaultSalience,
		Namespace: call.Token.Namespace(), CreatedAt: showTime(call.Time),
	}
	switch {
	case strings.TrimSpace(one.Content) == "":
		return memory{}, &packs.InvalidError{Param: "content", Message: "is blank; write what to keep"}
	case len(one.Content) > maxContent:
		return memory{}, &packs.InvalidError{Param: "content", Message: fmt.Sprintf("has %d bytes, more than the %d allowed; keep the gist, or make it a note", len(one.Content), maxContent)}
	case !utf8.ValidString(one.Content):
		return memory{}, &packs.InvalidError{Param: "content", Message: "is not valid UTF-8"}
	}
	if p.Has("salience") {
		one.Salience = p.Float("salience")
		if _, ok := p["salience"].(json.Number); !ok || !(one.Salience >= 0 && one.Salience <= 1) {
			return memory{}, &packs.InvalidError{Param: "salience", Message: "must be a number from 0 to 1"}
		}
	}
	for _, tag := range p.Strings("tags") {
		if strings.TrimSpace(tag) == "" || len(tag) > maxTag || !utf8.ValidString(tag) {
			return memory{}, &packs.InvalidError{Param: "tags", Message: fmt.Sprintf("each tag needs something to read in at most %d bytes", maxTag)}
		}
		if !slices.Contains(one.Tags, tag) {
			one.Tags = append(one.Tags, tag)
		}
	}
	if len(one.Tags) > maxTags {
		return memory{}, &packs.InvalidError{Param: "tags", Message: fmt.Sprintf("has %d tags, more than the %d allowed", len(one.Tags), maxTags)}
	}
	return one, nil
}

// getAbout asks kg for the record, as the caller, and returns its full id. What refuses the caller's
// own get refuses this one.
func getAbout(ctx context.Context, call *packs.Call) (string, error) {
	about, err := packs.ParseIDRef("about", call.Params.String("about"))
	if err != nil {
		return "", err
	}
	text, err := call.Invoke(ctx, "get", packs.Params{"id": about.Given})
	if err != nil {
		return "", err
	}
	var record struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
	}
	err = json.Unmarshal(text, &record)
	if record.Kind == "edge" {
		return "", &packs.InvalidError{Param: "about", Message: "is the id of an edge; give an entity's or a note's"}
	}
	ref, malformed := packs.ParseIDRef("about", record.ID)
	if err != nil || malformed != nil || !ref.Full {
		// A policy may have taken the id out of the answer.
		return "", &packs.InvalidError{Param: "about", Message: "the record was found, but its id is not shown to you; leave about out"}
	}
	return ref.Text, nil
}
