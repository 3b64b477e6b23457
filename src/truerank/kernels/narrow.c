/* Counts from float64 factors by scores in float32, which take half the time.

   The error of a float32 score is at most a known margin. A score farther than that from a target needs
   no better precision; the others (one to six items in 100,000, with iALS on MovieLens 1M and Gowalla)
   are computed again in float64. So all counts are exactly those of the float64 scores. If too many
   scores are close, for example because many items tie, the loop gives up. */

#define NUMBER_BITS 32
#define FACTOR_BITS 64
#include "tiles.h"

enum {
    FREE = 4096, /* close calls that are always allowed */
    SHARE = 256, /* beyond these, at most one close call in so many scores */
};

typedef struct {
    const Matrix *users, *items;
    const double *bias;
    Block *block;
    Tiles tiles;
    float *lows, *highs; /* per target, the bounds that a float32 score is compared with */
    int64_t *close;      /* per target, the number of scores between the two */
    int64_t n_close, n_scores;
} Narrow;

/* Find the length of the longest of the items low..high - 1, and their largest bias. */
static void find_largest(const Narrow *narrow, int64_t low, int64_t high, double *longest, double *heaviest) {
    *longest = *heaviest = 0;
    for (int64_t item = low; item < high; item++) {
        *longest = fmax(*longest, length(narrow->items, item, narrow->items->columns));
        if (narrow->bias)
            *heaviest = fmax(*heaviest, fabs(narrow->bias[item]));
    }
}

/* Return how far a float32 score, from factors rounded to float32, can be from the float64 score.

   Two roundings of the factors, one per addition and one of the bounds add up to depth + 3 parts in
   2^24 of the sum of the absolute products, which is at most the product of the lengths plus the bias.
   The rest covers numbers too small for the precision of float32. */
static double margin(int64_t depth, double length, double longest, double heaviest) {
    return (depth + 8) * (0x1p-24 * (length * longest + heaviest) + 0x1p-126 * (1 + length + longest));
}

/* Recompute in float64 the scores that are too close to target t; `scores` are of the items from `low` on. */
static void settle(const Narrow *narrow, int64_t user, const number *scores, int64_t stop, int64_t low, int64_t t) {
    Block *block = narrow->block;
    double target = ((const double *)block->targets)[t];
    vector bottom = splat(narrow->lows[t]), top = splat(narrow->highs[t]);
    for (int64_t start = 0; start < stop; start += LANES) {
        vector rough = load(scores + start);
        if (!is_any((rough >= bottom) & (rough <= top)))
            continue;
        for (int64_t j = start; j < start + LANES; j++) {
            if (!(scores[j] >= narrow->lows[t] && scores[j] <= narrow->highs[t]))
                continue;
            double exact = score(narrow->users, user, narrow->items, narrow->bias, low + j);
            block->above[t] += exact > target;
            block->tied[t] += exact == target;
        }
    }
}

/* Count one user's masked scores, of the items from `low` on. */
static void count_user(Narrow *narrow, int64_t user, const number *scores, int64_t stop, int64_t low, double off) {
    Block *block = narrow->block;
    int64_t first = block->test.begin[user], last = block->test.end[user];
    const double *targets = block->targets;
    for (int64_t t = first; t < last; t++) {
        narrow->lows[t] = (float)(targets[t] - off);
        narrow->highs[t] = (float)(targets[t] + off);
        narrow->close[t] = 0;
    }
    count_between(
        scores, stop, narrow->highs + first, narrow->lows + first, last - first, block->above + first,
        narrow->close + first);
    for (int64_t t = first; t < last; t++) {
        if (narrow->close[t])
            settle(narrow, user, scores, stop, low, t);
        narrow->n_close += narrow->close[t];
    }
    narrow->n_scores += stop * (last - first);
}

static int64_t count_chunk(Narrow *narrow, int64_t low, int64_t high) {
    Block *block = narrow->block;
    Tiles *tiles = &narrow->tiles;
    double longest, heaviest;
    find_largest(narrow, low, high, &longest, &heaviest);
    pack(narrow->items, narrow->bias, low, high, PANEL, tiles->depth, tiles->items);
    for (int64_t first = 0; first < block->users; first += USERS) {
        score_panel(tiles, first / USERS, high - low);
        for (int64_t user = first; user < least(first + USERS, block->users); user++) {
            number *scores = tiles->scores + (user - first) * ROW;
            int64_t stop = mask(block, user, scores, low, high);
            double size = length(narrow->users, user, narrow->items->columns);
            count_user(narrow, user, scores, stop, low, margin(tiles->depth, size, longest, heaviest));
        }
        if (narrow->n_close > FREE + narrow->n_scores / SHARE)
            return GAVE_UP;
    }
    return DONE;
}

int64_t count_narrow(
    const Matrix *users, const Matrix *items, const double *bias, Block *block, int64_t start, int64_t stop) {
    if (!is_valid(block) || users->columns < 1)
        return INVALID;
    int64_t status = start == 0 ? find_targets(users, items, bias, block) : DONE, size = block->test.size + 1;
    if (status != DONE)
        return status;
    Narrow narrow = {
        .users = users,
        .items = items,
        .bias = bias,
        .block = block,
        .lows = malloc(size * sizeof(float)),
        .highs = malloc(size * sizeof(float)),
        .close = malloc(size * sizeof(int64_t)),
    };
    int has_room = new_tiles(&narrow.tiles, block->users, users->columns);
    status = has_room && narrow.lows && narrow.highs && narrow.close ? DONE : NO_MEMORY;
    if (status == DONE)
        pack(users, NULL, 0, block->users, USERS, narrow.tiles.depth, narrow.tiles.users);
    for (int64_t low = start; low < stop && status == DONE; low += narrow.tiles.chunk)
        status = count_chunk(&narrow, low, least(low + narrow.tiles.chunk, stop));
    free(narrow.lows);
    free(narrow.highs);
    free(narrow.close);
    free(narrow.tiles.memory);
    return status;
}
