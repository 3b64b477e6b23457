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

/* KEEP_COST is how many targets a score could be compared with, both ways, in the time of `keep_hits`, about. */
#if defined(__AVX512F__)
#define KEEP_COST 1
#else
#define KEEP_COST 2.5
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
/* For each set of lanes, as bits: its lanes in order, one byte each. */
#define BIT(set, lane) ((uint64_t)((set) >> (lane) & 1))
#define BEFORE_4(set) (BIT(set, 0) + BIT(set, 1) + BIT(set, 2) + BIT(set, 3))
#define LANES_OF(set) \
    (BIT(set, 1) << 8 * BIT(set, 0) | BIT(set, 2) * 2 << 8 * (BIT(set, 0) + BIT(set, 1)) | \
     BIT(set, 3) * 3 << 8 * (BIT(set, 0) + BIT(set, 1) + BIT(set, 2)) | \
     (BIT(set, 4) * 4 | BIT(set, 5) * 5 << 8 * BIT(set, 4) | BIT(set, 6) * 6 << 8 * (BIT(set, 4) + BIT(set, 5))) \
         << 8 * BEFORE_4(set) | \
     (BIT(set, 7) * 7 << 8 * (BIT(set, 4) + BIT(set, 5) + BIT(set, 6))) << 8 * BEFORE_4(set))
#define LANES_OF_4(set) LANES_OF(set), LANES_OF(set + 1), LANES_OF(set + 2), LANES_OF(set + 3)
#define LANES_OF_16(set) LANES_OF_4(set), LANES_OF_4(set + 4), LANES_OF_4(set + 8), LANES_OF_4(set + 12)
#define LANES_OF_64(set) LANES_OF_16(set), LANES_OF_16(set + 16), LANES_OF_16(set + 32), LANES_OF_16(set + 48)
static const uint64_t SETS[256] = {LANES_OF_64(0), LANES_OF_64(64), LANES_OF_64(128), LANES_OF_64(192)};

INLINE int64_t keep_hits(number *to, vector value, wholes hits) {
    uint32_t chosen = _mm256_movemask_ps((__m256)hits);
    __m256i lanes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(SETS + chosen)));
    store(to, (vector)_mm256_permutevar8x32_ps((__m256)value, lanes));
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
