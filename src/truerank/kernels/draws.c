/* Items drawn for users, from a stream of random words for each user.

   Items without repetition are a set of bits. If they are a small share of the candidates, they are drawn one by one.
   If not, each candidate is first in the set with a chance p of a few binary digits, 64 of them at a time, and random
   members are then added or removed until the size is right: whatever p is, no set of this size is more likely than
   another. More than half of the candidates are drawn as those that are left out. */

#include "draws.h"

#include <stdlib.h>
#include <string.h>

enum {
    DIGITS = 6, /* of the chance p */
    LEAST_SHARE = 3, /* in units of the last digit: below this, drawing one by one is faster */
    SPARSE = 4, /* if fewer than one item in so many is a candidate, places in a list of them are drawn */
    ABREAST = 8, /* words of a set that are filled together */
    BATCH = ABREAST * DIGITS, /* random words that are computed together */
};

#if defined(__AVX2__)
#define UNROLLED _Pragma("GCC unroll 8") /* so that shifts are constants */
#else
#define UNROLLED /* which is shorter */
#endif
typedef uint8_t eight_bytes __attribute__((vector_size(8)));
typedef uint64_t four __attribute__((vector_size(32)));
typedef int32_t eight __attribute__((vector_size(32)));

static const uint64_t STEP = 0x9E3779B97F4A7C15;

/* Write BATCH words of a stream of random ones (splitmix64), and return the state after them. */
static __attribute__((noinline)) uint64_t next_words(uint64_t state, uint64_t *words) {
    for (int64_t i = 0; i < BATCH; i++) {
        uint64_t mixed = state += STEP;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
        words[i] = mixed ^ (mixed >> 31);
    }
    return state;
}

/* Random numbers below `range`, two from each word, except for those that would make some numbers likelier than others
   (Lemire, Fast random integer generation in an interval, 2019). If there is a list, they are places in it. */
typedef struct {
    uint64_t state, range, least;
    const int32_t *list;
    int64_t next, size;
    uint32_t items[2 * BATCH];
} Stream;

/* Draw some items; of the low half of each word first. */
static __attribute__((noinline)) void refill(Stream *stream) {
    uint64_t words[BATCH], low = UINT32_MAX, is_any_less = 0;
    stream->state = next_words(stream->state, words);
    for (int i = 0; i < BATCH; i++) {
        uint64_t first = (words[i] & low) * stream->range, second = (words[i] >> 32) * stream->range;
        is_any_less |= ((first & low) < stream->least) | ((second & low) < stream->least);
        stream->items[2 * i] = (uint32_t)(first >> 32);
        stream->items[2 * i + 1] = (uint32_t)(second >> 32);
    }
    stream->next = 0;
    stream->size = 2 * BATCH;
    if (is_any_less) {
        stream->size = 0;
        for (int i = 0; i < 2 * BATCH; i++) {
            stream->items[stream->size] = stream->items[i];
            stream->size += ((words[i / 2] >> 32 * (i % 2) & low) * stream->range & low) >= stream->least;
        }
    }
    for (int i = 0; i < stream->size && stream->list; i++)
        stream->items[i] = (uint32_t)stream->list[stream->items[i]];
}

/* Return the next items, at least one and at most `size`, whose number then is `size`. */
static const uint32_t *next_items(Stream *stream, int64_t *size) {
    while (stream->next == stream->size)
        refill(stream);
    const uint32_t *items = stream->items + stream->next;
    *size = *size < stream->size - stream->next ? *size : stream->size - stream->next;
    stream->next += *size;
    return items;
}

/* Block what is not in the catalogue. */
static void block_rest(Board *board) {
    board->blocked[board->n_items / 64] |= ~(uint64_t)0 << board->n_items % 64;
    for (int64_t w = board->n_items / 64 + 1; w < board->n_words; w++)
        board->blocked[w] = ~(uint64_t)0;
}

int new_board(Board *board, int64_t n_items) {
    int64_t n_words = (n_items / 64 / ABREAST + 1) * ABREAST;
    *board = (Board){.n_items = n_items, .n_words = n_words};
    board->blocked = calloc(2 * n_words, sizeof *board->blocked);
    board->candidates = malloc((n_items + 8) * sizeof *board->candidates);
    if (!board->blocked || !board->candidates) {
        free_board(board);
        return 0;
    }
    board->chosen = board->blocked + n_words;
    block_rest(board);
    for (int byte = 0; byte < 256; byte++)
        for (int bit = 0, size = 0; bit < 8; bit++)
            if (byte >> bit & 1)
                board->places[byte][size++] = bit;
    return 1;
}

void free_board(Board *board) {
    free(board->blocked);
    free(board->candidates);
}

static inline uint64_t has(const uint64_t *words, uint32_t item) {
    return words[item / 64] >> item % 64 & 1;
}

/* Block the listed items of a user; return how many differ, or INVALID if they do not ascend within the catalogue. */
static __attribute__((noinline)) int64_t block(Board *board, Lists *lists, int64_t user) {
    int64_t begin = lists->begin[user], end = lists->end[user];
    int32_t last = -1, is_wrong = 0, size = 0;
    for (int64_t k = begin; k < end; k++) {
        int32_t item = lists->items[k];
        is_wrong |= item < last;
        size += item != last;
        last = item;
    }
    if (is_wrong || (end > begin && lists->items[begin] < 0) || last >= board->n_items)
        return INVALID;
    for (int64_t k = begin; k < end; k++) {
        uint32_t item = (uint32_t)lists->items[k];
        board->blocked[item / 64] |= (uint64_t)1 << item % 64;
    }
    lists->next[user] = end;
    return size;
}

/* Note which of the listed items are blocked, unless there is no room for it; return how many of them differ. */
static int64_t find_blocked(const Board *board, const Lists *lists, int64_t user, uint8_t *seen) {
    int64_t n_blocked = 0, last = -1;
    for (int64_t k = lists->begin[user]; k < lists->end[user]; k++) {
        uint32_t item = (uint32_t)lists->items[k];
        int is_blocked = item < (uint64_t)board->n_items && has(board->blocked, item);
        n_blocked += is_blocked && item != last;
        last = item;
        if (seen)
            seen[k] = (uint8_t)is_blocked;
    }
    return n_blocked;
}

/* Free the listed items, and words around them that are free otherwise. */
static __attribute__((noinline)) void unblock(Board *board, const Lists *lists, int64_t user) {
    int64_t begin = lists->begin[user], end = lists->end[user];
    if (end - begin > board->n_words)
        memset(board->blocked, 0, board->n_words * sizeof *board->blocked);
    for (int64_t k = begin; k < end && end - begin <= board->n_words; k++)
        if ((uint64_t)lists->items[k] < (uint64_t)board->n_items)
            board->blocked[lists->items[k] / 64] = 0;
}

/* Write the numbers of the bits of one word, from `base` on, and return where they end. */
static inline int32_t *list_word(const Board *board, uint64_t word, int64_t base, int32_t *items) {
    uint64_t sizes = word - (word >> 1 & 0x5555555555555555);
    sizes = (sizes & 0x3333333333333333) + (sizes >> 2 & 0x3333333333333333);
    sizes = ((sizes + (sizes >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101; /* bits up to the end of each byte */
    eight first = (eight){0} + (int32_t)base;
    int32_t *end = items + (sizes >> 56);
    sizes <<= 8;
    UNROLLED for (int byte = 0; byte < 64; byte += 8) {
        eight_bytes places;
        memcpy(&places, board->places[word >> byte & 255], sizeof places);
        eight listed = __builtin_convertvector(places, eight) + first;
        memcpy(items + (sizes >> byte & 255), &listed, sizeof listed); /* what follows the last bit is overwritten */
        first += 8;
    }
    return end;
}

/* List the chosen items, or all candidates that are not chosen, and empty the set. */
static __attribute__((noinline)) void list_chosen(Board *board, int is_rest, int32_t *items) {
    for (int64_t w = 0; w < board->n_words; w++) {
        uint64_t word = board->chosen[w];
        items = list_word(board, is_rest ? ~(word | board->blocked[w]) : word, 64 * w, items);
        board->chosen[w] = 0;
    }
}

/* Choose each candidate with a chance of `share` in 2^DIGITS; return how many are chosen. */
static int64_t choose_some(Board *board, uint64_t seed, int64_t share) {
    int64_t size = 0;
    uint64_t state = seed * STEP, words[BATCH];
    for (int64_t w = 0; w < board->n_words; w += ABREAST) {
        uint64_t *chosen = board->chosen + w;
        four sets[ABREAST / 4] = {{0}}, word; /* in registers */
        state = next_words(state, words);
        for (int digit = 0; digit < DIGITS; digit++) {
            uint64_t is_one = -(uint64_t)(share >> digit & 1); /* or else 0 */
            UNROLLED for (int i = 0; i < ABREAST / 4; i++) {
                memcpy(&word, words + digit * ABREAST + 4 * i, sizeof word);
                sets[i] = (sets[i] & word) | ((sets[i] | word) & is_one);
            }
        }
        memcpy(chosen, sets, sizeof sets);
        for (int i = 0; i < ABREAST; i++) {
            chosen[i] &= ~board->blocked[w + i];
            size += __builtin_popcountll(chosen[i]);
        }
    }
    return size;
}

/* Choose random items until `wanted` of them are chosen; those that are added are listed. */
static void add_some(Board *board, Stream *stream, int64_t size, int64_t wanted, int32_t *items) {
    while (size < wanted) {
        int64_t n_drawn = wanted - size;
        const uint32_t *drawn = next_items(stream, &n_drawn);
        for (int64_t i = 0; i < n_drawn; i++) {
            uint64_t is_new = 1 ^ (has(board->blocked, drawn[i]) | has(board->chosen, drawn[i]));
            board->chosen[drawn[i] / 64] |= is_new << drawn[i] % 64;
            *items = (int32_t)drawn[i];
            items += is_new;
            size += is_new;
        }
    }
}

/* Drop random items until `wanted` of them are chosen. */
static void drop_some(Board *board, Stream *stream, int64_t size, int64_t wanted) {
    while (size > wanted) {
        int64_t n_drawn = size - wanted;
        const uint32_t *drawn = next_items(stream, &n_drawn);
        for (int64_t i = 0; i < n_drawn; i++) {
            size -= has(board->chosen, drawn[i]);
            board->chosen[drawn[i] / 64] &= ~((uint64_t)1 << drawn[i] % 64);
        }
    }
}

/* Draw without repetition from `left` candidates; the stream begins after the words for their chances. */
static void draw_distinct(Board *board, Stream *stream, const Draws *draws, int64_t user, int64_t left, int32_t *items) {
    int64_t size = draws->sizes[user], is_rest = draws->way == DISTINCT && 2 * size > left;
    int64_t wanted = is_rest ? left - size : size, share = (wanted << DIGITS) / left;
    int is_dense = draws->way == DISTINCT && share >= LEAST_SHARE;
    int64_t found = is_dense ? choose_some(board, draws->seeds[user], share) : 0;
    add_some(board, stream, found, wanted, items);
    drop_some(board, stream, found, wanted);
    if (is_dense || is_rest)
        list_chosen(board, is_rest, items);
    else
        for (int64_t i = 0; i < size; i++)
            board->chosen[items[i] / 64] = 0;
}

/* Draw with repetition. */
static void draw_repeated(const Board *board, Stream *stream, int64_t size, int32_t *items) {
    for (int64_t found = 0; found < size;) {
        int64_t n_drawn = size - found;
        const uint32_t *drawn = next_items(stream, &n_drawn);
        for (int64_t i = 0; i < n_drawn; i++) {
            items[found] = (int32_t)drawn[i];
            found += !has(board->blocked, drawn[i]);
        }
    }
}

/* Begin the series of items of a user, after the words for `choose_some`; if few are left, it has no blocked ones. */
static void start(Stream *stream, Board *board, uint64_t seed, int64_t left) {
    int64_t is_sparse = left < board->n_items / SPARSE, range = is_sparse ? left : board->n_items;
    if (is_sparse)
        list_chosen(board, 1, board->candidates);
    stream->state = (seed + (uint64_t)(DIGITS * board->n_words)) * STEP;
    stream->range = (uint64_t)range;
    stream->least = range ? ((uint64_t)1 << 32) % range : 0;
    stream->list = is_sparse ? board->candidates : NULL;
    stream->next = stream->size = 0;
}

/* Draw for a user whose excluded items are blocked, so that `left` are not. */
static int64_t draw_candidates(
    Board *board, const Draws *draws, int64_t user, int64_t left, Lists *taken, uint8_t *seen, int32_t *items) {
    int64_t size = draws->sizes[user], n_both = find_blocked(board, taken, user, seen);
    Stream stream;
    if (draws->way == NESTED) /* the series must not depend on what is taken from it */
        start(&stream, board, draws->seeds[user], left);
    int64_t n_taken = block(board, taken, user);
    left -= n_taken - n_both;
    if (n_taken < 0 || size < 0 || (draws->way == REPEATED ? left < (size > 0) : left < size))
        return INVALID;
    if (draws->way != NESTED)
        start(&stream, board, draws->seeds[user], left);
    if (draws->way == REPEATED)
        draw_repeated(board, &stream, size, items);
    else if (size)
        draw_distinct(board, &stream, draws, user, left, items);
    return DONE;
}

int64_t draw_for_user(
    Board *board, const Draws *draws, int64_t user, Lists *excluded, Lists *taken, uint8_t *seen, int32_t *items) {
    int64_t n_excluded = block(board, excluded, user), status = INVALID;
    if (n_excluded >= 0)
        status = draw_candidates(board, draws, user, board->n_items - n_excluded, taken, seen, items);
    unblock(board, excluded, user);
    unblock(board, taken, user);
    block_rest(board);
    return status;
}

/* Return whether every span of a user lies in its list. */
static int are_within(const Lists *lists, int64_t users) {
    int is_wrong = 0;
    for (int64_t user = 0; user < users; user++)
        is_wrong |= lists->begin[user] < 0 || lists->begin[user] > lists->end[user] || lists->end[user] > lists->size;
    return !is_wrong;
}

int64_t draw_items(const Draws *draws, Lists *excluded, Lists *taken, int32_t *items) {
    Board board;
    if (!are_within(excluded, draws->users) || !are_within(taken, draws->users))
        return INVALID;
    if (!new_board(&board, draws->n_items))
        return NO_MEMORY;
    int64_t status = DONE;
    for (int64_t user = 0; user < draws->users && status == DONE; user++) {
        status = draw_for_user(&board, draws, user, excluded, taken, NULL, items);
        items += status == DONE ? draws->sizes[user] : 0;
    }
    free_board(&board);
    return status;
}
