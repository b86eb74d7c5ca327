package topology

import "slices"

// Sort sorts by way of pointers: the code for those is in the sidecar's binary once, and that for each struct takes up to
// eighteen kilobytes.
func Sort[T any](list []T, compare func(a, b *T) int) {
	order := make([]*T, len(list))
	for i := range list {
		element := list[i]
		order[i] = &element
	}
	slices.SortFunc(order, compare)
	for i, element := range order {
		list[i] = *element
	}
}
