package display_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/internal/display"
)

func TestOrdinaryWritingStaysIntact(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "Excelencia académica: ñandú, ¿pingüino? «sí» — 10 €", "مرحبا بالعالم، ١٢٣", "می\u200cخواهم", "क्\u200dष", "日本語 한국어",
		"👨‍👩‍👧‍👦 👍🏽 ❤️ 1️⃣ 🇵🇪 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏳️‍🌈 ☎︎", "e\u0301", "a\u00a0b", "葛\U000E0100", "\u0600١",
	} {
		if shown, found := display.Text(s); shown != s || found != nil {
			t.Errorf("%q became %q with %v", s, shown, found)
		}
	}
}

func TestWhatDeceivesIsWrittenOut(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]struct {
		shown string
		kind  display.Kind
	}{
		"a\u202eb":                     {"a[U+202E]b", display.Bidi},
		"a\u2067b":                     {"a[U+2067]b", display.Bidi},
		"a\u061cb":                     {"a[U+061C]b", display.Bidi},
		"a\u200bb":                     {"a[U+200B]b", display.ZeroWidth},
		"a\u200db":                     {"a[U+200D]b", display.ZeroWidth},
		"pa\u00adgo":                   {"pa[U+00AD]go", display.ZeroWidth},
		"\ufeffx":                      {"[U+FEFF]x", display.ZeroWidth},
		"a\ufe0fb":                     {"a[U+FE0F]b", display.ZeroWidth},
		"a\U000E0041":                  {"a[U+E0041]", display.ZeroWidth},
		"\u3164":                       {"[U+3164]", display.ZeroWidth},
		"\U0001F3F4\U000E0067x":        {"\U0001F3F4[U+E0067]x", display.ZeroWidth},
		"\U0001F600\u200d":             {"\U0001F600[U+200D]", display.ZeroWidth},
		"a\u0007\n":                    {"a[U+0007][U+000A]", display.Control},
		"a\u0085":                      {"a[U+0085]", display.Control},
		"a\u2028b":                     {"a[U+2028]b", display.Control},
		"\ue000":                       {"[U+E000]", display.PrivateUse},
		"\U00100000":                   {"[U+100000]", display.PrivateUse},
		"\uffff":                       {"[U+FFFF]", display.Unassigned},
		"a\xffb":                       {"a[U+FFFD]b", display.Unassigned},
		strings.Repeat("\u202e", 2):    {"[U+202E][U+202E]", display.Bidi},
		"\U000E0100 after nothing Han": {"[U+E0100] after nothing Han", display.ZeroWidth},
	} {
		shown, found := display.Text(s)
		if shown != want.shown || !slices.Equal(found, []display.Kind{want.kind}) {
			t.Errorf("%q: %q %v", s, shown, found)
		}
	}
}

func TestShownTextIsOrdinary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.String().Draw(rt, "s")
		shown, found := display.Text(s)
		again, none := display.Text(shown)
		if again != shown || none != nil {
			rt.Fatalf("%q is shown as %q, which still holds %v", s, shown, none)
		}
		if (found == nil) != (shown == s) {
			rt.Fatalf("%q: shown %q, found %v", s, shown, found)
		}
	})
}

func TestJSONMeansTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		in := map[string]string{rapid.String().Draw(rt, "k"): rapid.String().Draw(rt, "v") + "\u202e\U000E0041"}
		doc, err := json.Marshal(in)
		if err != nil {
			rt.Fatal(err)
		}
		safe := display.JSON(doc)
		if strings.ContainsAny(string(safe), "\u202e\U000E0041\u200b\x7f") {
			rt.Fatalf("left in %q", safe)
		}
		var a, b map[string]string
		if err := json.Unmarshal(doc, &a); err != nil {
			rt.Fatal(err)
		}
		if err := json.Unmarshal(safe, &b); err != nil || !reflect.DeepEqual(a, b) {
			rt.Fatalf("%q became %q: %v", doc, safe, err)
		}
	})
}

func TestValueShowsKeysAndTexts(t *testing.T) {
	t.Parallel()
	shown, found, err := display.Value(`{"monto":10.50,"moti\u202evo":["a\u200bb",{"x":"ok"}],"moti[U+202E]vo":true}`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"monto":10.50,"moti[U+202E]vo":true,"moti[U+202E]vo[2]":["a[U+200B]b",{"x":"ok"}]}`; string(out) != want {
		t.Errorf("shown %s", out)
	}
	if len(found) != 2 || found[0].Path != "/moti[U+202E]vo[2]" || found[1].Path != "/moti[U+202E]vo[2]/0" || found[1].Shown != "a[U+200B]b" {
		t.Errorf("found %+v", found)
	}
	if _, _, err := display.Value(`{`); err == nil {
		t.Error("what is no JSON was shown")
	}
}
