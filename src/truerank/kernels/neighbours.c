/* Neighbourhoods of items: how many users two items share, and which of an item's similarities are the largest. */

#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "rows.h"

enum { SPARSE = 32 }; /* rows that get fewer counts than this part of their length are not searched from end to end */

/* Counts of one row, and 64 bits per word that say which are not 0, where few are. */
typedef struct {
    int64_t width;
    int32_t *counts;
    uint64_t *marks;
} Together;

/* Add the items of all users of an item; return how many were added. */
static int64_t add_users(const Rows *by_item, const Rows *by_user, int64_t item, int32_t *counts) {
    int64_t added = 0;
    for (int64_t k = by_item->begin[item]; k < by_item->begin[item + 1]; k++) {
        int64_t user = by_item->columns[k], first = by_user->begin[user], last = by_user->begin[user + 1];
        for (int64_t at = first; at < last; at++)
            counts[by_user->columns[at]]++;
        added += last - first;
    }
    return added;
}

/* Write what is not 0 among the counts low..high - 1, and set it to 0; return where the next goes. */
static int64_t take_counts(
    const Together *together, int64_t low, int64_t high, int64_t at, int32_t *columns, double *counts) {
    for (int64_t j = low; j < high; j++) {
        columns[at] = (int32_t)j;
        counts[at] = together->counts[j];
        at += together->counts[j] != 0;
        together->counts[j] = 0;
    }
    return at;
}

/* Do the same where few are not 0: mark the words in which they are. */
static int64_t take_marked(
    const Together *together, const Rows *by_item, const Rows *by_user, int64_t item, int64_t at, int32_t *columns,
    double *counts) {
    int64_t words = (together->width + 63) / 64;
    for (int64_t k = by_item->begin[item]; k < by_item->begin[item + 1]; k++) {
        int64_t user = by_item->columns[k];
        for (int64_t j = by_user->begin[user]; j < by_user->begin[user + 1]; j++)
            together->marks[by_user->columns[j] / 64] |= (uint64_t)1 << by_user->columns[j] % 64;
    }
    for (int64_t word = 0; word < words; word++) {
        for (uint64_t bits = together->marks[word]; bits; bits &= bits - 1) {
            int64_t j = word * 64 + __builtin_ctzll(bits);
            columns[at] = (int32_t)j;
            counts[at++] = together->counts[j];
            together->counts[j] = 0;
        }
        together->marks[word] = 0;
    }
    return at;
}

/* Return how many items the users of an item have, each as often as it occurs. */
static int64_t most_added(const Rows *by_item, const Rows *by_user, int64_t item) {
    int64_t added = 0;
    for (int64_t k = by_item->begin[item]; k < by_item->begin[item + 1]; k++)
        added += by_user->begin[by_item->columns[k] + 1] - by_user->begin[by_item->columns[k]];
    return added;
}

static int is_valid_pair(const Rows *by_item, const Rows *by_user, int64_t start, int64_t stop) {
    return lies_within(by_item, start, stop, by_user->count) && lies_within(by_user, 0, by_user->count, by_item->count);
}

int64_t most_together(const Rows *by_item, const Rows *by_user, int64_t start, int64_t stop) {
    int64_t total = 0;
    if (!is_valid_pair(by_item, by_user, start, stop))
        return INVALID;
    for (int64_t item = start; item < stop; item++) {
        int64_t added = most_added(by_item, by_user, item);
        total += added < by_item->count ? added : by_item->count;
    }
    return total;
}

int64_t count_together(
    const Rows *by_item, const Rows *by_user, int64_t start, int64_t stop, int64_t *begin, int32_t *columns,
    double *counts) {
    int64_t width = by_item->count;
    if (!is_valid_pair(by_item, by_user, start, stop))
        return INVALID;
    Together together = {width, calloc(width + 1, sizeof(int32_t)), calloc(width / 64 + 1, sizeof(uint64_t))};
    int64_t status = together.counts && together.marks ? DONE : NO_MEMORY;
    begin[0] = 0;
    for (int64_t item = start; item < stop && status == DONE; item++) {
        int64_t at = begin[item - start], added = add_users(by_item, by_user, item, together.counts);
        begin[item - start + 1] = added >= width / SPARSE
            ? take_counts(&together, 0, width, at, columns, counts)
            : take_marked(&together, by_item, by_user, item, at, columns, counts);
    }
    free(together.counts);
    free(together.marks);
    return status;
}

/* Let the value at the top of a heap, of which the smallest should be on top, sink to its place. */
static void sink(double *heap, int64_t size, int64_t at) {
    double value = heap[at];
    for (int64_t child = 2 * at + 1; child < size; child = 2 * at + 1) {
        child += child + 1 < size && heap[child + 1] < heap[child];
        if (heap[child] >= value)
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

/* Return the k-th largest of at least k values. */
static double kth_largest(const double *values, int64_t size, int64_t k, double *heap) {
    memcpy(heap, values, k * sizeof *heap);
    for (int64_t at = k / 2 - 1; at >= 0; at--)
        sink(heap, k, at);
    for (int64_t i = k; i < size; i++)
        if (values[i] > heap[0]) {
            heap[0] = values[i];
            sink(heap, k, 0);
        }
    return heap[0];
}

/* Keep the k largest of a row of at least k values, of equal ones the first; both rows may be the same. */
static int64_t keep_row(
    const double *values, const int32_t *columns, int64_t size, int64_t k, double *heap, double *kept,
    int32_t *kept_columns) {
    double least = kth_largest(values, size, k, heap);
    int64_t equal = k, at = 0;
    for (int64_t i = 0; i < size; i++)
        equal -= values[i] > least;
    for (int64_t i = 0; i < size; i++) {
        int is_equal = values[i] == least && equal > 0;
        equal -= is_equal;
        if (values[i] > least || is_equal) {
            kept_columns[at] = columns[i];
            kept[at++] = values[i];
        }
    }
    return at;
}

int64_t keep_largest(int64_t rows, int64_t *begin, int32_t *columns, double *values, int64_t size, int64_t k) {
    int is_valid = k > 0 && begin[0] == 0 && begin[rows] <= size;
    for (int64_t row = 0; row < rows; row++)
        is_valid &= begin[row] <= begin[row + 1];
    double *heap = is_valid ? malloc(k * sizeof *heap) : NULL;
    if (!heap)
        return is_valid ? NO_MEMORY : INVALID;
    int64_t at = 0, first = 0;
    for (int64_t row = 0; row < rows; row++) {
        int64_t last = begin[row + 1], kept = last - first;
        if (kept > k)
            kept = keep_row(values + first, columns + first, kept, k, heap, values + at, columns + at);
        else {
            memmove(values + at, values + first, kept * sizeof *values);
            memmove(columns + at, columns + first, kept * sizeof *columns);
        }
        begin[row] = at;
        at += kept;
        first = last;
    }
    begin[rows] = at;
    free(heap);
    return DONE;
}
