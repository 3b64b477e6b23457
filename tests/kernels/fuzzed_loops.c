/* What libFuzzer runs: every function of kernels.h, on lists that are right or damaged, under the sanitizers.

   Each array has exactly the size that kernels.h asks for, so the address sanitizer sees every read or write beside it.
   Factors are small whole numbers, whose scores are exact; where the lists are right, counts and best items must be
   those of a slow definition. `make fuzz-loops` builds and runs it, with what the loops allocate taken from here. */

#include <math.h>
#ifndef REPLAYED
#include <sanitizer/asan_interface.h>
#endif
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/truerank/kernels/kernels.h"

#define BOTH(name, ...) (wide ? name##_float64(__VA_ARGS__) : name##_float32(__VA_ARGS__))
#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #condition), abort()))

enum { ROOMS = 256, USERS = 5 };

static const uint8_t *data;
static size_t left;
static uint64_t state;
static void *rooms[ROOMS];
static int n_rooms, wide, is_damaged;
static int64_t n_users, n_items, calls, further; /* and how many inputs were run, and went past the first check */

static size_t n_live; /* large blocks that the loops have not freed */

#ifndef REPLAYED
/* Memory for the loops. The sanitizer maps large blocks anew each time, which would take most of the time; here they are
   parts of one array that is poisoned everywhere else, until all of them are free. */
enum { LARGE = 1 << 17, GAP = 64 };
static _Alignas(64) char pool[1 << 26];
static size_t n_used;

void *malloc_fuzzed(size_t size) {
    if (size < LARGE)
        return malloc(size);
    if (!n_used)
        ASAN_POISON_MEMORY_REGION(pool, n_used = GAP);
    char *memory = pool + n_used;
    n_used += (size + 2 * GAP - 1) / GAP * GAP;
    n_live++;
    CHECK(n_used < sizeof pool);
    ASAN_POISON_MEMORY_REGION(memory, pool + n_used - memory);
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    return memory;
}

void free_fuzzed(void *memory) {
    if ((char *)memory < pool || (char *)memory >= pool + sizeof pool) {
        free(memory);
        return;
    }
    if (--n_live)
        return;
    ASAN_POISON_MEMORY_REGION(pool, n_used);
    n_used = 0;
}
#endif

/* A decision below `size`, one byte of the input; 0 when there are no more. */
static int64_t choose(int64_t size) {
    if (!left)
        return 0;
    left--;
    return *data++ % size;
}

/* A whole number below `size` that follows from one seed of the input. */
static int64_t draw(int64_t size) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)((state >> 11) % (uint64_t)size);
}

static void *room(int64_t count, int64_t size) {
    CHECK(n_rooms < ROOMS);
    void *memory = malloc(count * size);
    memset(memory, 0, count * size);
    return rooms[n_rooms++] = memory;
}

static int64_t *sizes(int64_t count) {
    return room(count, sizeof(int64_t));
}

static double get(const void *numbers, int64_t at) {
    return wide ? ((const double *)numbers)[at] : ((const float *)numbers)[at];
}

static void set(void *numbers, int64_t at, double value) {
    if (wide)
        ((double *)numbers)[at] = value;
    else
        ((float *)numbers)[at] = (float)value;
}

/* Small whole numbers, some of which are not finite if the input wants it. */
static void *numbers(int64_t count, int can_be_bad) {
    void *made = room(count, wide ? sizeof(double) : sizeof(float));
    int64_t range = 1 + choose(20), bad = can_be_bad && choose(4) == 3;
    for (int64_t i = 0; i < count; i++)
        set(made, i, bad && draw(20) == 0 ? (draw(2) ? NAN : -INFINITY) : (double)(draw(2 * range + 1) - range));
    return made;
}

static Matrix matrix(int64_t rows, int64_t columns, int can_be_bad) {
    return (Matrix){numbers(rows * columns, can_be_bad), rows, columns, columns, 1};
}

/* Change some of the numbers, if lists are to be damaged. */
static void damage_sizes(int64_t *given, int64_t count) {
    const int64_t odd[] = {-1, 0, 1, 2, count, count + 1, INT32_MAX, INT64_MAX, INT64_MIN, -count};
    for (int64_t times = is_damaged && count ? choose(3) : 0; times; times--)
        given[draw(count)] = odd[choose(10)];
}

static void damage_items(int32_t *given, int64_t count) {
    const int32_t odd[] = {-1, 0, 1, INT32_MAX, INT32_MIN, (int32_t)n_items};
    for (int64_t times = is_damaged && count ? choose(3) : 0; times; times--)
        given[draw(count)] = odd[choose(6)];
}

/* Ascending columns per row, each with a chance of one in `rarity`. */
static Rows rows(int64_t count, int64_t width, int64_t rarity) {
    int64_t *begin = sizes(count + 1), size = 0;
    int32_t *all = room(count * width, sizeof *all);
    for (int64_t row = 0; row < count; row++) {
        for (int64_t column = 0; column < width; column++)
            if (draw(rarity) == 0)
                all[size++] = (int32_t)column;
        begin[row + 1] = size;
    }
    int32_t *columns = room(size, sizeof *columns);
    memcpy(columns, all, size * sizeof *columns);
    damage_sizes(begin, count + 1);
    damage_items(columns, size);
    return (Rows){count, begin, columns, size};
}

static Lists lists(int64_t rarity) {
    Rows made = rows(n_users, n_items, rarity);
    int64_t *begin = sizes(n_users), *end = sizes(n_users), *next = sizes(n_users);
    for (int64_t user = 0; user < n_users; user++) {
        begin[user] = next[user] = made.begin[user];
        end[user] = made.begin[user + 1];
    }
    damage_sizes(next, n_users);
    return (Lists){made.columns, made.size, begin, end, next};
}

static Block block(void) {
    Lists train = lists(2 + choose(9)), test = lists(2 + choose(9));
    return (Block){
        n_users, train, test, numbers(test.size, 0), sizes(test.size), room(test.size, 1), sizes(test.size),
        sizes(test.size)};
}

/* Mark a user's items. */
static void mark(const Lists *lists, int64_t user, uint8_t *marks) {
    for (int64_t j = lists->begin[user]; j < lists->end[user]; j++)
        marks[lists->items[j]] = 1;
}

/* The slow definition of counts: all irrelevant candidates against each held-out item. */
static void check_counts(const Block *block, const double *scores, int64_t depth) {
    for (int64_t user = 0; user < n_users; user++) {
        uint8_t *is_no_other = room(n_items, 1);
        mark(&block->train, user, is_no_other);
        mark(&block->test, user, is_no_other);
        for (int64_t j = block->test.begin[user]; j < block->test.end[user]; j++) {
            double own = scores[user * n_items + block->test.items[block->order[j]]];
            int64_t above = 0, tied = 0;
            for (int64_t item = 0; item < n_items; item++) {
                above += !is_no_other[item] && scores[user * n_items + item] > own;
                tied += !is_no_other[item] && scores[user * n_items + item] == own;
            }
            CHECK(block->above[j] == (above < depth ? above : depth));
            CHECK(block->tied[j] == (above < depth ? tied : 0));
        }
    }
}

static Best best(void) {
    int64_t k = 1 + choose(12);
    return (Best){
        n_users, k, lists(2 + choose(9)), numbers(n_users * k, 0), room(n_users * k, sizeof(int32_t)), sizes(n_users)};
}

/* The slow definition of best items: none is left out that is better than one in the row. */
static void check_best(const Best *best, const Lists *excluded, const double *scores) {
    for (int64_t user = 0; user < n_users; user++) {
        const int32_t *row = best->items + user * best->k;
        int64_t found = best->found[user], candidates = 0;
        uint8_t *is_excluded = room(n_items, 1);
        mark(excluded, user, is_excluded);
        for (int64_t item = 0; item < n_items; item++)
            candidates += !is_excluded[item];
        CHECK(found == (candidates < best->k ? candidates : best->k));
        for (int64_t i = 0; i < found; i++) {
            double score = scores[user * n_items + row[i]];
            int64_t better = 0;
            CHECK(get(best->scores, user * best->k + i) == score && !is_excluded[row[i]]);
            for (int64_t item = 0; item < n_items; item++) {
                double other = scores[user * n_items + item];
                better += !is_excluded[item] && (other > score || (other == score && item < row[i]));
            }
            CHECK(better == i);
        }
    }
}

/* Factors and the scores that they give. */
typedef struct {
    Matrix users, items;
    void *bias;
    double *scores;
} Factors;

static Factors factors(void) {
    int64_t columns = 1 + choose(20), has_bias = choose(2);
    Factors made = {matrix(n_users, columns + has_bias, 0), matrix(n_items, columns, 0), NULL, NULL};
    made.bias = has_bias ? numbers(n_items, 0) : NULL;
    made.scores = room(n_users * n_items, sizeof(double));
    for (int64_t user = 0; user < n_users; user++) {
        if (has_bias)
            set((void *)made.users.numbers, user * (columns + 1) + columns, 1);
        for (int64_t item = 0; item < n_items; item++) {
            double score = has_bias ? get(made.bias, item) : 0;
            for (int64_t k = 0; k < columns; k++)
                score += get(made.users.numbers, user * made.users.columns + k) *
                    get(made.items.numbers, item * columns + k);
            made.scores[user * n_items + item] = score;
        }
    }
    return made;
}

static int is_read(const Lists *lists) {
    for (int64_t user = 0; user < n_users; user++)
        if (lists->next[user] < lists->end[user])
            return 0;
    return 1;
}

static void restart(Lists *lists) {
    for (int64_t user = 0; user < n_users; user++)
        lists->next[user] = lists->begin[user];
}

/* Any order of the catalogue, with the lengths of the factors in it, and the place of each item. */
static Ordered ordered(const Matrix *items, int32_t *places) {
    int32_t *order = room(n_items, sizeof *order);
    double *lengths = room(n_items, sizeof *lengths);
    for (int64_t item = 0; item < n_items; item++) {
        int64_t at = draw(item + 1);
        order[item] = order[at];
        order[at] = (int32_t)item;
    }
    for (int64_t place = 0; place < n_items; place++) {
        double sum = 0;
        for (int64_t k = 0; k < items->columns; k++)
            sum += pow(get(items->numbers, order[place] * items->columns + k), 2);
        lengths[place] = sqrt(sum);
        places[order[place]] = (int32_t)place;
    }
    return (Ordered){n_items, order, lengths};
}

/* Lists by their places, or an empty one if `place_lists` refuses them. */
static Lists placed(Block *block, const int32_t *places, int *is_placed) {
    int32_t *items = room(block->train.size + block->test.size, sizeof *items);
    int64_t *begin = sizes(n_users), *end = sizes(n_users), *next = sizes(n_users);
    *is_placed = place_lists(block, places, n_items, items) == DONE && is_read(&block->train) && is_read(&block->test);
    for (int64_t user = 0; user < n_users && *is_placed; user++) {
        begin[user] = next[user] = block->train.begin[user] + block->test.begin[user];
        end[user] = block->train.end[user] + block->test.end[user];
    }
    return (Lists){items, block->train.size + block->test.size, begin, end, next};
}

static int64_t step_of(int64_t unit) {
    return unit * (1 + choose(4));
}

static int64_t fuzz_count_factors(void) {
    Factors made = factors();
    Block counts = block();
    int64_t status = DONE, step = step_of(16);
    int is_narrow = wide && choose(2);
    for (int64_t low = 0; low < n_items && status == DONE; low += step) {
        int64_t high = low + step < n_items ? low + step : n_items;
        status = is_narrow ? count_narrow(&made.users, &made.items, made.bias, &counts, low, high)
                           : BOTH(count_factors, &made.users, &made.items, made.bias, &counts, low, high);
    }
    if (status == DONE && !is_damaged)
        check_counts(&counts, made.scores, INT64_MAX);
    return status;
}

static int64_t fuzz_count_top(void) {
    Factors made = factors();
    Block given = block(), counts = given;
    int32_t *places = room(n_items, sizeof *places);
    Ordered order = ordered(&made.items, places);
    int64_t status = DONE, step = step_of(256), depth = choose(3) ? 1 + choose(30) : INT64_MAX;
    int is_placed, bits = wide ? 64 : 8 << choose(3);
    counts.train = placed(&given, places, &is_placed);
    if (!is_placed)
        return INVALID;
    restart(&counts.test);
    for (int64_t low = 0; low < n_items && status == DONE; low += step) {
        int64_t high = low + step < n_items ? low + step : n_items;
        status = bits == 8
            ? count_sieve(&made.users, &made.items, made.bias, &counts, &order, depth, low, high)
            : bits == 16
            ? count_int16(&made.users, &made.items, made.bias, &counts, &order, depth, low, high)
            : BOTH(count_top, &made.users, &made.items, made.bias, &counts, &order, depth, low, high);
    }
    CHECK(bits != 16 || int16_lanes() || status != DONE);
    if (status == DONE && !is_damaged)
        check_counts(&given, made.scores, depth);
    return status;
}

static int64_t fuzz_best_factors(void) {
    Factors made = factors();
    Best found = best();
    Lists excluded = found.excluded, none = {room(0, 4), 0, sizes(n_users), sizes(n_users), sizes(n_users)};
    int32_t *places = room(n_items, sizeof *places);
    Ordered order = ordered(&made.items, places);
    Block both = {n_users, excluded, none, NULL, NULL, NULL, NULL, NULL};
    int is_placed, is_quick = !wide && choose(2);
    found.excluded = placed(&both, places, &is_placed);
    if (!is_placed)
        return INVALID;
    int64_t status = DONE, step = step_of(256);
    for (int64_t low = 0; low < n_items && status == DONE; low += step) {
        int64_t high = low + step < n_items ? low + step : n_items;
        status = is_quick && low ? best_sieve(&made.users, &made.items, made.bias, &found, &order, low, high)
                                 : BOTH(best_factors, &made.users, &made.items, made.bias, &found, &order, low, high);
    }
    if (status == DONE && !is_damaged)
        check_best(&found, &excluded, made.scores);
    return status;
}

static double *plain(const void *scores) {
    double *copy = room(n_users * n_items, sizeof *copy);
    for (int64_t i = 0; i < n_users * n_items; i++)
        copy[i] = get(scores, i);
    return copy;
}

static int64_t fuzz_scores(void) {
    Matrix scores = matrix(n_users, n_items, 1);
    int64_t status;
    if (choose(2)) {
        Block counts = block();
        status = BOTH(count_scores, &scores, &counts);
        if (status == -1 && !is_damaged)
            check_counts(&counts, plain(scores.numbers), INT64_MAX);
    } else {
        Best found = best();
        status = BOTH(best_scores, &scores, &found);
        if (status == -1 && !is_damaged)
            check_best(&found, &found.excluded, plain(scores.numbers));
    }
    CHECK(status < n_users * n_items);
    return status == -1 ? DONE : status;
}

/* Rows with values, and their product with a sparse or dense matrix. */
static int64_t fuzz_histories(void) {
    int64_t n_rows = 1 + choose(20), kind = choose(4), status;
    Rows entries = rows(n_users, n_rows, 1 + choose(6)), sparse = rows(n_rows, n_items, 1 + choose(6));
    Histories histories = {entries, numbers(entries.size, 0)}, similarity = {sparse, numbers(sparse.size, 0)};
    void *scores = numbers(n_users * n_items, 0);
    if (kind == 0) {
        Matrix dense = matrix(n_rows, n_items, 0);
        return BOTH(score_dense, &histories, &dense, scores);
    }
    if (check_columns(&sparse, n_items) != DONE)
        return INVALID;
    status = BOTH(score_sparse, &histories, &similarity, n_items, scores);
    if (kind == 1) {
        Block counts = block();
        status = BOTH(count_sparse, &histories, &similarity, n_items, &counts);
        if (status == -1 && !is_damaged)
            check_counts(&counts, plain(scores), INT64_MAX);
    } else if (kind == 2) {
        Best found = best();
        status = BOTH(best_sparse, &histories, &similarity, n_items, &found);
        if (status == -1 && !is_damaged)
            check_best(&found, &found.excluded, plain(scores));
    }
    return status == -1 ? DONE : status;
}

static int64_t fuzz_pairs(void) {
    int64_t columns = 1 + choose(20), size = choose(60), *user_of = sizes(size), *item_of = sizes(size);
    Matrix users = matrix(n_users, columns, 0), items = matrix(n_items, columns, 0);
    for (int64_t i = 0; i < size; i++) {
        user_of[i] = i * n_users / size;
        item_of[i] = draw(n_items);
    }
    damage_sizes(item_of, size);
    damage_sizes(user_of, size);
    void *bias = choose(2) ? numbers(n_items, 0) : NULL, *scores = numbers(size, 0);
    int64_t status = BOTH(score_pairs, &users, &items, bias, user_of, item_of, size, scores);
    for (int64_t i = 0; i < size && status == DONE; i++) {
        double score = bias ? get(bias, item_of[i]) : 0;
        for (int64_t k = 0; k < columns; k++)
            score += get(users.numbers, user_of[i] * columns + k) * get(items.numbers, item_of[i] * columns + k);
        CHECK(get(scores, i) == score);
    }
    return status;
}

/* The slow definition of counts among samples, where each relevant and each sampled item has its score. */
/* Draws of any kind, of no more items than are left if lists are in order. */
static Draws draws_for(const Lists *excluded, const Lists *taken) {
    uint64_t *seeds = room(n_users, sizeof *seeds);
    int64_t *n_drawn = sizes(n_users), most = choose(40), way = choose(3);
    for (int64_t user = 0; user < n_users; user++) {
        uint8_t *is_blocked = room(n_items, 1);
        int64_t n_left = n_items;
        if (!is_damaged) {
            mark(excluded, user, is_blocked);
            mark(taken, user, is_blocked);
        }
        for (int64_t item = 0; item < n_items; item++)
            n_left -= is_blocked[item];
        seeds[user] = (uint64_t)draw(INT32_MAX) << 33;
        n_drawn[user] = way == REPEATED ? (n_left ? most : 0) : most % 4 == 3 ? n_left : most < n_left ? most : n_left;
    }
    return (Draws){n_items, n_users, way, seeds, n_drawn};
}

/* Where the draws of each user begin, and where the last ones end. */
static int64_t *bounds_of(const Draws *draws) {
    int64_t *begin = sizes(n_users + 1);
    for (int64_t user = 0; user < n_users; user++)
        begin[user + 1] = begin[user] + draws->sizes[user];
    return begin;
}

static int64_t fuzz_draws(void) {
    Lists excluded = lists(1 + choose(9)), taken = lists(2 + choose(9));
    Draws draws = draws_for(&excluded, &taken);
    int64_t *begin = bounds_of(&draws);
    int32_t *items = room(begin[n_users] + 8, sizeof *items);
    int64_t status = draw_items(&draws, &excluded, &taken, items);
    CHECK(status == DONE || is_damaged);
    for (int64_t user = 0; user < n_users && status == DONE; user++) {
        uint8_t *is_blocked = room(n_items, 1);
        mark(&excluded, user, is_blocked);
        mark(&taken, user, is_blocked);
        for (int64_t i = begin[user]; i < begin[user + 1]; i++) {
            CHECK(0 <= items[i] && items[i] < n_items && !is_blocked[items[i]]);
            is_blocked[items[i]] = draws.way != REPEATED;
        }
    }
    return status;
}

/* Compare the counts of a block with those of lists of items. */
static void check_among(const Block *block, const double *scores, const int32_t *items, const int64_t *begin, const int64_t *end) {
    for (int64_t user = 0; user < n_users; user++)
        for (int64_t j = block->test.begin[user]; j < block->test.end[user]; j++) {
            const double *own = scores + user * n_items;
            int64_t above = 0, tied = 0;
            for (int64_t i = begin[user]; i < end[user]; i++) {
                above += own[items[i]] > own[block->test.items[block->order[j]]];
                tied += own[items[i]] == own[block->test.items[block->order[j]]];
            }
            CHECK(block->above[j] == above && block->tied[j] == tied);
        }
}

static int64_t fuzz_among(void) {
    Factors made = factors();
    Block counted = block();
    int64_t padded = (made.users.columns + WHOLE_COLUMNS - 1) / WHOLE_COLUMNS * WHOLE_COLUMNS;
    int16_t *whole = room(n_items * padded, sizeof *whole);
    double *unit = room(1, sizeof *unit);
    CHECK(BOTH(round_factors, &made.items, made.bias, whole, unit) == DONE);
    Draws draws = draws_for(&counted.train, &counted.test);
    int is_drawn = choose(2);
    int64_t status = BOTH(
        count_among, &made.users, &made.items, made.bias, choose(3) ? whole : NULL, unit, &counted,
        is_drawn ? &draws : NULL);
    if (status != DONE || is_damaged)
        return status;
    int64_t *begin = bounds_of(&draws);
    int32_t *items = room(begin[n_users] + 8, sizeof *items);
    if (is_drawn && draw_items(&draws, &counted.train, &counted.test, items) == DONE)
        check_among(&counted, made.scores, items, begin, begin + 1);
    else
        check_among(&counted, made.scores, counted.train.items, counted.train.begin, counted.train.end);
    return status;
}

static int64_t fuzz_together(void) {
    Rows by_item = rows(n_items, n_users, 1 + choose(9)), by_user = rows(n_users, n_items, 1 + choose(9));
    int64_t start = draw(n_items), stop = start + draw(n_items - start + 1);
    int64_t most = most_together(&by_item, &by_user, start, stop);
    if (most < 0)
        return most;
    int64_t *begin = sizes(stop - start + 1), k = choose(9);
    int32_t *columns = room(most + 1, sizeof *columns);
    double *counts = room(most + 1, sizeof *counts);
    int64_t status = count_together(&by_item, &by_user, start, stop, begin, columns, counts);
    CHECK(status == DONE && begin[stop - start] <= most);
    damage_sizes(begin, stop - start + 1);
    return keep_largest(stop - start, begin, columns, counts, most + 1, k);
}

static int64_t fuzz_least_squares(void) {
    int64_t width = 16 * (1 + choose(3)), status;
    wide = 0;
    Rows given = rows(n_users, n_items, 2 + choose(6));
    Matrix factors = matrix(n_items, width, 0);
    double *gram = room(width * width, sizeof *gram), *penalties = room(n_users, sizeof *penalties);
    float *products = room(width * width, sizeof *products);
    CHECK(sum_squares(factors.numbers, width, 0, n_items, gram, products) == DONE);
    for (int64_t user = 0; user < n_users; user++)
        penalties[user] = 1 + choose(9);
    if (choose(2))
        return solve_rows(&given, 0, n_users, &factors, gram, penalties, room(n_users * width, sizeof(double)));
    for (int64_t i = 0; i < width * width; i++)
        products[i] = (float)(i / width <= i % width ? gram[i] : gram[i % width * width + i / width]);
    status = improve_rows(&given, 0, n_users, &factors, products, penalties, choose(4), numbers(n_users * width, 0));
    return status;
}

static int64_t fuzz_inverse(void) {
    int64_t block = inverse_block(), width = block * (1 + choose(2)), start = draw(width + 1);
    if (choose(256) < 250) /* it takes long, and nothing in it depends on the input but these two */
        return INVALID;
    wide = 1;
    double *matrix = numbers(width * width, 0), *panel = numbers(block * width, 0), *pivot = numbers(block * block, 0);
    for (int64_t i = 0; i < block; i++)
        pivot[i * block + i] += 1000;
    CHECK(invert_block(pivot) == DONE);
    return sweep_columns(matrix, width, panel, pivot, room(block * width, sizeof *matrix), start / block * block);
}

static int64_t (*const LOOPS[])(void) = {
    fuzz_count_factors, fuzz_count_top, fuzz_best_factors, fuzz_scores, fuzz_histories, fuzz_pairs,
    fuzz_among, fuzz_draws, fuzz_together, fuzz_least_squares, fuzz_inverse,
};

/* Write how many inputs were run and went past the first check, for tests/fuzzing.py to add. */
static void report(void) {
    const char *path = getenv("FUZZ_COUNTS");
    char name[4096];
    FILE *file = path && snprintf(name, sizeof name, "%s.new", path) < (int)sizeof name ? fopen(name, "w") : NULL;
    if (file) {
        fprintf(file, "%lld %lld", (long long)calls, (long long)further);
        fclose(file);
        rename(name, path); /* whole even if this process is killed now */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    data = bytes;
    left = size;
    int64_t loop = choose(sizeof LOOPS / sizeof *LOOPS), large = choose(64) == 63;
    wide = (int)choose(2);
    is_damaged = choose(2) == 1;
    state = 1 + (uint64_t)choose(256) * 0x9E3779B97F4A7C15;
    n_users = 1 + choose(large ? 2 : USERS);
    n_items = 1 + choose(40) + (large ? 16 * choose(64) : 0);
    int64_t status = LOOPS[loop]();
    CHECK((status >= DONE || status == INVALID) && !n_live);
    further += status != INVALID;
    if (++calls % 1000 == 0)
        report();
    while (n_rooms)
        free(rooms[--n_rooms]);
    return 0;
}

#ifndef REPLAYED
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);

/* Any change of an input, but most large catalogues become small ones: they take thirty times as long. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
    size = LLVMFuzzerMutate(bytes, size, most);
    if (size > 1 && bytes[1] % 64 == 63 && seed % 32)
        bytes[1]--;
    return size;
}
#endif

#ifdef REPLAYED
/* Run inputs from the standard input, each after a byte that says how long it is. */
int main(void) {
    CHECK(processor_level() >= 0);
    for (int size; (size = getchar()) != EOF;) {
        uint8_t bytes[256];
        CHECK(fread(bytes, 1, size, stdin) == (size_t)size);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    printf("%lld %lld", (long long)calls, (long long)further);
}
#endif
