package topology

import (
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Whatever is taken for composed is: each character stays, and joins none before it.
func TestComposedIsNormal(t *testing.T) {
	t.Parallel()
	for r := range rune(unicode.MaxRune + 1) {
		text := string(r)
		if composed(text) && (!norm.NFC.IsNormalString(text) || !norm.NFC.PropertiesString(text).BoundaryBefore()) {
			t.Errorf("%U is taken for composed", r)
		}
	}
}

func TestCommonTextIsComposed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"orders.failed", "größe", "naïve", "заказы", "παραγγελίες", "注文", "订单", "주문", "ひらがな", "طلبات", "😀"} {
		if !composed(text) {
			t.Errorf("%s is not", text)
		}
	}
}
