/* What to do with the lanes in which a comparison is true, its hits: count them, or keep only them.

   Vector types have no operations for either that compilers turn into the best instructions, so this is the one
   place that uses these directly. */

#ifndef HITS_H
#define HITS_H

#include "vectors.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
typedef int64_t tally;

INLINE uint32_t bits(wholes hits) {
    return NUMBER_BITS == 32 ? _mm512_movepi32_mask((__m512i)hits) : _mm512_movepi64_mask((__m512i)hits);
}

INLINE tally add_hits(tally counts, wholes hits) {
    return counts + __builtin_popcount(bits(hits));
}

INLINE int64_t total(tally counts) {
    return counts;
}
#else
typedef wholes tally;

INLINE tally add_hits(tally counts, wholes hits) {
    return counts - hits; /* true is all ones, which is -1 */
}

INLINE int64_t total(tally counts) {
    return sum(counts);
}
#endif

/* `keep_hits` writes a whole vector that begins with all hits; it returns how many lanes count, which may include others. */
#if defined(__AVX512F__)
INLINE int64_t keep_hits(number *to, vector value, wholes hits) {
    uint32_t chosen = bits(hits);
#if NUMBER_BITS == 32
    store(to, (vector)_mm512_maskz_compress_ps(chosen, (__m512)value));
#else
    store(to, (vector)_mm512_maskz_compress_pd(chosen, (__m512d)value));
#endif
    return __builtin_popcount(chosen);
}
#elif defined(__AVX2__) && NUMBER_BITS == 32
/* For each set of lanes 0 to 3, as bits: its lanes in order. */
static const int32_t LANES_OF[16][4] = {
    {0}, {0}, {1}, {0, 1}, {2}, {0, 2}, {1, 2}, {0, 1, 2},
    {3}, {0, 3}, {1, 3}, {0, 1, 3}, {2, 3}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3},
};

INLINE void keep_lanes(number *to, __m128 half, uint32_t chosen) {
    _mm_storeu_ps(to, _mm_permutevar_ps(half, _mm_loadu_si128((const __m128i *)LANES_OF[chosen])));
}

INLINE int64_t keep_hits(number *to, vector value, wholes hits) {
    uint32_t chosen = _mm256_movemask_ps((__m256)hits), low = chosen & 15, high = chosen >> 4;
    keep_lanes(to, _mm256_castps256_ps128((__m256)value), low);
    keep_lanes(to + __builtin_popcount(low), _mm256_extractf128_ps((__m256)value, 1), high);
    return __builtin_popcount(chosen);
}
#else
#define KEEPS_OTHERS
INLINE int64_t keep_hits(number *to, vector value, wholes hits) {
    store(to, value);
    return is_any(hits) ? LANES : 0;
}
#endif

/* Write the hits, and maybe others after them, and return how many they are. */
INLINE int64_t keep_only_hits(number *to, vector value, wholes hits) {
#ifdef KEEPS_OTHERS
    int64_t size = 0;
    UNROLLED for (int lane = 0; lane < LANES; lane++) {
        to[size] = value[lane];
        size -= hits[lane]; /* true is -1 */
    }
    return size;
#else
    return keep_hits(to, value, hits);
#endif
}

#endif
