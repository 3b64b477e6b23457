/* Scores in whole numbers of 32 bits, from factors of 16 bits; no part of a sum overflows. */

#define NUMBER_BITS 32
#include "hits.h"
#include "whole.h"

#include <math.h>

int64_t padded_columns(int64_t columns) {
    return (columns + WHOLE_COLUMNS - 1) / WHOLE_COLUMNS * WHOLE_COLUMNS;
}

__attribute__((noinline)) double length_of(const double *row, int64_t columns) {
    enum { PARTS = 8 }; /* sums side by side, because each addition waits for the one before it */
    double parts[PARTS] = {0}, total = 0;
    for (int64_t k = 0; k < columns; k++)
        parts[k % PARTS] += row[k] * row[k];
    for (int i = 0; i < PARTS; i++)
        total += parts[i];
    return sqrt(total);
}

double unit_of(double longest, int64_t columns) {
    return longest < 0x1p-40 ? 0 : longest / (LONGEST_WHOLE - 1 - sqrt(columns));
}

__attribute__((noinline)) void round_row(const double *row, int64_t columns, double unit, int64_t padded, int16_t *whole) {
    double per_unit = unit > 0 ? 1 / unit : 0;
    for (int64_t k = 0; k < columns; k++)
        whole[k] = (int16_t)(row[k] * per_unit + (row[k] < 0 ? -0.5 : 0.5));
    for (int64_t k = columns; k < padded; k++)
        whole[k] = 0;
}

/* Return by how much a product of whole numbers can differ from the score, in the same unit: by half a unit per factor
   of either row, times the length of the other, by what is lost in the chain of float32, and by rounding here. */
static double margin_of(int64_t columns) {
    return LONGEST_WHOLE * sqrt(columns) + columns + (columns + 8) * 128 + 4096;
}

static int32_t clamped(double value) {
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

int set_bounds(
    Whole *whole, const double *row, int64_t columns, double unit_of_items, const double *targets, int64_t size) {
    double unit = unit_of(length_of(row, columns), columns), both = unit * unit_of_items, margin = margin_of(columns);
    round_row(row, columns, unit, whole->columns, whole->own);
    whole->n_bounds = size;
    for (int64_t t = 0; t < size && both > 0; t++) {
        whole->lows[t] = clamped(targets[t] / both - margin);
        whole->highs[t] = clamped(targets[t] / both + margin);
    }
    return both > 0;
}

typedef int32_t lanes __attribute__((vector_size(VECTOR_BYTES)));

enum { STRIP = 4 * LANES }; /* scores that are searched together for close ones, of which there are few */
_Static_assert(MOST_SCORED % STRIP == 0, "whole strips fit where scores are written");

INLINE lanes load_lanes(const int32_t *from) {
    lanes value;
    memcpy(&value, from, sizeof value);
    return value;
}

/* Write the products of one row with others. */
#if defined(__AVX2__)
INLINE __m256i read(const int16_t *from) {
    return _mm256_loadu_si256((const __m256i *)from);
}

INLINE void multiply(const int16_t *own, const int16_t *const *rows, int64_t columns, int32_t *products) {
    __m256i sums[SIDE_BY_SIDE];
    UNROLLED for (int i = 0; i < SIDE_BY_SIDE; i++)
        sums[i] = _mm256_madd_epi16(read(own), read(rows[i]));
    for (int64_t k = WHOLE_COLUMNS; k < columns; k += WHOLE_COLUMNS)
        UNROLLED for (int i = 0; i < SIDE_BY_SIDE; i++)
            sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(read(own + k), read(rows[i] + k)));
    UNROLLED for (int i = 0; i < SIDE_BY_SIDE / 2; i++) /* halves are added, which takes less than adding neighbours */
        sums[i] = _mm256_add_epi32(
            _mm256_unpacklo_epi32(sums[2 * i], sums[2 * i + 1]), _mm256_unpackhi_epi32(sums[2 * i], sums[2 * i + 1]));
    UNROLLED for (int i = 0; i < SIDE_BY_SIDE / 4; i++)
        sums[i] = _mm256_add_epi32(
            _mm256_unpacklo_epi64(sums[2 * i], sums[2 * i + 1]), _mm256_unpackhi_epi64(sums[2 * i], sums[2 * i + 1]));
    __m256i low = _mm256_permute2x128_si256(sums[0], sums[1], 0x20);
    __m256i high = _mm256_permute2x128_si256(sums[0], sums[1], 0x31);
    _mm256_storeu_si256((__m256i *)products, _mm256_add_epi32(low, high));
}
#else
INLINE void multiply(const int16_t *own, const int16_t *const *rows, int64_t columns, int32_t *products) {
    for (int i = 0; i < SIDE_BY_SIDE; i++) {
        int32_t total = 0;
        for (int64_t k = 0; k < columns / WHOLE_COLUMNS * WHOLE_COLUMNS; k++)
            total += own[k] * rows[i][k];
        products[i] = total;
    }
}
#endif

/* Fetch the rows of some items into the cache. */
static void fetch(const Whole *whole, const int32_t *chosen) {
    for (int i = 0; i < SIDE_BY_SIDE; i++)
        for (int64_t k = 0; k < whole->columns; k += 32)
            __builtin_prefetch(whole->items + chosen[i] * whole->columns + k);
}

static void score_whole(const Whole *whole, const int32_t *chosen, int64_t size, int32_t *scores) {
    enum { EARLY = 2 * SIDE_BY_SIDE, NEAR = 1 << 19 }; /* so many ahead, unless all rows fit into this many numbers */
    int64_t columns = whole->columns, fetched = whole->rows * columns > NEAR ? size - EARLY : 0;
    for (int64_t start = 0; start < size; start += SIDE_BY_SIDE) {
        const int16_t *rows[SIDE_BY_SIDE];
        if (start < fetched)
            fetch(whole, chosen + start + EARLY);
        UNROLLED for (int i = 0; i < SIDE_BY_SIDE; i++)
            rows[i] = whole->items + chosen[start + i] * columns;
        multiply(whole->own, rows, columns, scores + start);
    }
}

/* Count the scores above one bound, and those that are not below the other; true is -1. */
static void compare(const int32_t *scores, int64_t stop, int32_t low, int32_t high, int64_t *above, int64_t *close) {
    lanes over = {0}, from = {0};
    for (int64_t j = 0; j < stop; j += LANES) {
        lanes score = load_lanes(scores + j);
        over += score > high;
        from += score >= low;
    }
    *above = -sum(over);
    *close = -sum(from) - *above;
}

void count_whole(
    const Whole *whole, int32_t *chosen, int64_t size, int32_t *scores, int64_t *above, int64_t *close) {
    int64_t padded = (size + SIDE_BY_SIDE - 1) / SIDE_BY_SIDE * SIDE_BY_SIDE, stop = (size + STRIP - 1) / STRIP * STRIP;
    for (int64_t i = size; i < padded; i++)
        chosen[i] = chosen[0];
    score_whole(whole, chosen, padded, scores);
    for (int64_t i = size; i < stop; i++)
        scores[i] = INT32_MIN;
    for (int64_t t = 0; t < whole->n_bounds; t++)
        compare(scores, stop, whole->lows[t], whole->highs[t], above + t, close + t);
}

int64_t list_close(const Whole *whole, int64_t t, const int32_t *scores, int64_t size, int32_t *places) {
    int32_t low = whole->lows[t], high = whole->highs[t];
    int64_t n_close = 0;
    for (int64_t start = 0; start < size; start += STRIP) {
        lanes any = {0};
        UNROLLED for (int i = 0; i < STRIP; i += LANES) {
            lanes score = load_lanes(scores + start + i);
            any |= (score >= low) & (score <= high);
        }
        if (!is_any(any))
            continue;
        for (int64_t j = start; j < least(start + STRIP, size); j++) {
            places[n_close] = (int32_t)j;
            n_close += (scores[j] >= low) & (scores[j] <= high);
        }
    }
    return n_close;
}
