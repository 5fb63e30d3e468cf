package identity_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/catalog"

	"github.com/anuencia-harness/anuencia/adapters/identity"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

const one = `people:
  - institution_id: A-1
    display_name: Ana
    roles: [registro, approver]
    units: [u]
    institutional: true
    status: active
    language: es
    attributes: {campus: norte}
    handles: {api: ana, telegram: "77"}
`

// ids is an Ensure that numbers people as they come.
type ids struct {
	mu    sync.Mutex
	known map[string]anuencia.PersonID
}

func (i *ids) ensure(_ context.Context, institutionID string) (anuencia.PersonID, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known == nil {
		i.known = map[string]anuencia.PersonID{}
	}
	id, ok := i.known[institutionID]
	if !ok {
		id = anuencia.PersonID(uuid.UUID{15: byte(len(i.known) + 1)})
		i.known[institutionID] = id
	}
	return id, nil
}

func files(text string) fstest.MapFS { return fstest.MapFS{"people.yaml": {Data: []byte(text)}} }

func open(t *testing.T, text string) *identity.File {
	t.Helper()
	f, err := identity.NewFile(t.Context(), files(text), "people.yaml", new(ids).ensure)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return f
}

func notFound() *anuencia.Fault {
	return anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonActor)
}

func TestDemoPeople(t *testing.T) {
	t.Parallel()
	f, err := identity.NewFile(t.Context(), catalog.FS, "demo/people.yaml", new(ids).ensure)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	telegram := map[string]string{"1001": "requester", "1002": "clerk", "1003": "approver", "1004": "approver2", "1005": "auditor"}
	for number, name := range telegram {
		want, err := f.Resolve(t.Context(), anuencia.Handle{Channel: anuencia.ChannelTelegram, ExternalID: number})
		if err != nil {
			t.Fatalf("%s: %v", number, err)
		}
		for _, ch := range []anuencia.Channel{anuencia.ChannelAPI, anuencia.ChannelUI, anuencia.ChannelN8N, anuencia.ChannelUHP} {
			got, err := f.ResolveFresh(t.Context(), anuencia.Handle{Channel: ch, ExternalID: name})
			if err != nil || got.ID != want.ID {
				t.Errorf("%s on %s is not %s of Telegram: %v", name, ch, number, err)
			}
		}
	}
	student, err := f.Resolve(t.Context(), anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "requester"})
	if err != nil || student.InstitutionID != "2023-114" || !student.Institutional {
		t.Errorf("the requester is %+v: %v", student, err)
	}
	approvers, err := f.Holders(t.Context(), "approver")
	if err != nil || len(approvers) != 2 {
		t.Errorf("approvers %v: %v", approvers, err)
	}
	office, err := f.Holders(t.Context(), "oficina_datos")
	if err != nil || len(office) != 0 {
		t.Errorf("the data office is held by %v: %v", office, err)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	f := open(t, one)
	h := anuencia.Handle{Channel: anuencia.ChannelTelegram, ExternalID: "77"}
	a, err := f.Resolve(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if a.Handle != h || a.DisplayName != "Ana" || a.Language != "es" || a.Attributes["campus"] != "norte" || a.ID.IsZero() {
		t.Errorf("actor %+v", a)
	}
	for _, unknown := range []anuencia.Handle{
		{},
		{Channel: anuencia.ChannelAPI, ExternalID: "77"},
		{Channel: anuencia.ChannelAPI, ExternalID: "Ana"},
		{Channel: anuencia.ChannelAPI, ExternalID: "ana "},
		{Channel: anuencia.ChannelCLI, ExternalID: "ana"},
	} {
		if _, err := f.Resolve(t.Context(), unknown); !errors.Is(err, notFound()) {
			t.Errorf("%+v: %v", unknown, err)
		}
	}
}

func TestNobodyChangesTheRoster(t *testing.T) {
	t.Parallel()
	f := open(t, one)
	h := anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "ana"}
	a, err := f.Resolve(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	a.Roles[0], a.Attributes["campus"] = "admin", "sur"
	held, err := f.Holders(t.Context(), "registro")
	if err != nil || len(held) != 1 {
		t.Fatalf("holders %v: %v", held, err)
	}
	held[0].Roles[0] = "admin"
	again, err := f.Resolve(t.Context(), h)
	if err != nil || again.Roles[0] != "registro" || again.Attributes["campus"] != "norte" {
		t.Errorf("the roster was changed from outside: %+v, %v", again, err)
	}
}

func TestSuspendedIsNotFoundAndHoldsNothing(t *testing.T) {
	t.Parallel()
	f := open(t, strings.Replace(one, "status: active", "status: suspended", 1))
	_, suspended := f.ResolveFresh(t.Context(), anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "ana"})
	_, unknown := f.ResolveFresh(t.Context(), anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "x"})
	if !errors.Is(suspended, notFound()) || suspended.Error() != unknown.Error() {
		t.Errorf("suspended %v, unknown %v: they must be alike", suspended, unknown)
	}
	held, err := f.Holders(t.Context(), "registro")
	if err != nil || len(held) != 0 {
		t.Errorf("a suspended person holds a role: %v, %v", held, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	second := strings.TrimPrefix(one, "people:\n")
	rows := map[string]struct{ text, problem string }{
		"unknown key":        {strings.Replace(one, "units:", "unidades:", 1), "field unidades not found"},
		"two documents":      {one + "---\npeople: []\n", "more than one document"},
		"id twice":           {one + strings.NewReplacer("ana", "eva", "77", "78").Replace(second), "institution_id stands twice"},
		"handle twice":       {one + strings.NewReplacer("A-1", "A-2", "ana", "eva").Replace(second), `the handle "77" on telegram is also that of A-1`},
		"no id":              {strings.Replace(one, "A-1", "''", 1), "entry 1: institution_id is missing"},
		"no name":            {strings.Replace(one, "display_name: Ana", "display_name: ''", 1), "display_name is missing"},
		"status":             {strings.Replace(one, "status: active", "status: maybe", 1), "status must be active or suspended"},
		"no status":          {strings.Replace(one, "    status: active\n", "", 1), "status must be active or suspended"},
		"language":           {strings.Replace(one, "language: es", "language: fr", 1), "language must be es or en"},
		"role":               {strings.Replace(one, "registro,", "Registro Central,", 1), "is not the name of a role"},
		"everyone as a role": {strings.Replace(one, "registro,", "'*',", 1), "is not the name of a role"},
		"role twice":         {strings.Replace(one, "registro,", "approver,", 1), `role "approver" stands twice`},
		"no handles":         {strings.Replace(one, `{api: ana, telegram: "77"}`, "{}", 1), "has no handles"},
		"channel":            {strings.Replace(one, "api: ana", "fax: ana", 1), `unknown channel "fax"`},
		"the host's channel": {strings.Replace(one, "api: ana", "cli: ana", 1), `unknown channel "cli"`},
		"cut short":          {"", "nobody is in the file"},
		"nobody":             {"people: []\n", "nobody is in the file"},
		"empty handle":       {strings.Replace(one, "api: ana", "api: ''", 1), "the handle on api is missing"},
		"blank in handle":    {strings.Replace(one, "api: ana", "api: 'ana '", 1), "the handle on api is missing or not plain"},
		"control in handle":  {strings.Replace(one, "api: ana", `api: "a\u0000"`, 1), "the handle on api is missing or not plain"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := identity.NewFile(t.Context(), files(row.text), "people.yaml", new(ids).ensure)
			var p identity.ProblemsError
			if !errors.As(err, &p) || !strings.Contains(err.Error(), row.problem) {
				t.Errorf("got %v, want %q", err, row.problem)
			}
		})
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	if _, err := identity.NewFile(t.Context(), files(one), "other.yaml", new(ids).ensure); err == nil {
		t.Error("a missing file was read")
	}
	if _, err := identity.NewFile(t.Context(), files(one), "people.yaml", nil); err == nil {
		t.Error("a directory without ensure was opened")
	}
	broken := errors.New("no store")
	_, err := identity.NewFile(t.Context(), files(one), "people.yaml",
		func(context.Context, string) (anuencia.PersonID, error) { return anuencia.PersonID{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("a failing store gave %v", err)
	}
}

func TestReloadKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	f := open(t, one)
	h := anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: "ana"}
	before, err := f.Resolve(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := f.Reload(t.Context(), files(one)); err != nil || changed {
		t.Errorf("the same file: %v, %v", changed, err)
	}
	if _, err := f.Reload(t.Context(), files("people: [")); err == nil {
		t.Error("a broken file was taken")
	}
	if after, err := f.Resolve(t.Context(), h); err != nil || after.ID != before.ID {
		t.Errorf("after a broken file: %v", err)
	}
	changed, err := f.Reload(t.Context(), files(strings.Replace(one, "status: active", "status: suspended", 1)))
	if err != nil || !changed {
		t.Errorf("a new file: %v, %v", changed, err)
	}
	if _, err := f.Resolve(t.Context(), h); !errors.Is(err, notFound()) {
		t.Errorf("a suspension is effective at once: %v", err)
	}
}
