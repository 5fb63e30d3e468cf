package document

import (
	"fmt"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/mapping"
)

// The fields of the index.
const (
	fieldTitle = "titulo"
	fieldText  = "texto"
	titleBoost = 2.0
)

// newIndex makes an empty index in memory. The Spanish analyzer drops stop
// words, folds accents and stems; nothing is stored in the index, since the
// texts are at hand.
func newIndex() (bleve.Index, error) {
	field := func(locations bool) *mapping.FieldMapping {
		f := bleve.NewTextFieldMapping()
		f.Analyzer = es.AnalyzerName
		f.Store, f.DocValues, f.IncludeInAll = false, false, false
		f.IncludeTermVectors = locations
		return f
	}
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt(fieldTitle, field(false))
	doc.AddFieldMappingsAt(fieldText, field(true))
	m := bleve.NewIndexMapping()
	m.DefaultMapping = doc
	index, err := bleve.NewMemOnly(m)
	if err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return index, nil
}
