/* Items in the order of falling lengths, and the users whose targets they can reach.

   By Cauchy-Schwarz, a chunk of items too short to reach a user's lowest target is skipped. */

#ifndef TOP_H
#define TOP_H

#include "places.h"
#include "tiles.h"

/* Users and items of a call, and what is known of the users. */
typedef struct {
    const Matrix *users, *items;
    const number *bias;
    const Ordered *ordered;
    Block *block;
    int64_t depth;
    int64_t growth; /* a chunk is at most one part in so many of what came before it, but at least a bucket */
    Tiles tiles;
    double *lengths; /* of each user's factors */
    int64_t *open;   /* each user's targets that are not dropped: the highest ones */
    int32_t *chosen; /* users whose targets a chunk can reach */
    void *memory;
} Top;

/* Return how many of a user's targets have fewer than `depth` candidates above them: the others follow these. */
static int64_t count_open(const Top *top, int64_t user) {
    int64_t first = top->block->test.begin[user], size = top->block->test.end[user] - first, open = 0;
    while (open < size && top->block->above[first + open] < top->depth)
        open++;
    return open;
}

/* Drop a user's targets with `depth` candidates above them; what was counted for these depends on the order, so it is
   replaced. */
static void drop_targets(Top *top, int64_t user) {
    int64_t first = top->block->test.begin[user], open = count_open(top, user);
    for (int64_t t = first + open; t < first + top->open[user]; t++) {
        top->block->above[t] = top->depth;
        top->block->tied[t] = 0;
    }
    top->open[user] = open;
}

static int new_top(Top *top) {
    int64_t users = top->block->users, columns = top->items->columns;
    int has_tiles = new_tiles(&top->tiles, USERS, top->users->columns);
    top->memory = malloc((users + 1) * (sizeof *top->lengths + sizeof *top->open + sizeof *top->chosen));
    if (!has_tiles || !top->memory)
        return 0;
    top->lengths = top->memory;
    top->open = (int64_t *)(top->lengths + users);
    top->chosen = (int32_t *)(top->open + users);
    for (int64_t user = 0; user < users; user++) {
        top->open[user] = count_open(top, user);
        top->lengths[user] = top->open[user] ? length(top->users, user, columns) : 0;
    }
    return 1;
}

/* Return a number that no score of a user's factors, of this length, with items of a chunk exceeds.

   The exact score is at most the product of the lengths, plus the bias. Each of its roundings, and of those of the
   lengths, adds at most one part in 2^23 or 2^52; the last term covers numbers too small for that precision. */
static double highest(const Top *top, double size, double longest, double heaviest) {
    double part = NUMBER_BITS == 32 ? 0x1p-23 : 0x1p-52, tiny = NUMBER_BITS == 32 ? 0x1p-120 : 0x1p-1000;
    double product = size * longest, slack = (top->items->columns + 8) * part;
    return product + heaviest + slack * (product + fabs(heaviest)) + tiny * (top->items->columns + 8);
}

/* Find the users with a target that items at places low..high - 1 can reach; return how many they are. */
static int64_t choose_users(Top *top, int64_t low, int64_t high) {
    const number *targets = top->block->targets;
    double longest = 0, heaviest = 0;
    int64_t size = 0;
    for (int64_t place = low; place < high; place++)
        longest = fmax(longest, top->ordered->lengths[place]);
    for (int64_t place = low; place < high && top->bias; place++) {
        double weight = top->bias[top->ordered->items[place]];
        heaviest = place == low ? weight : fmax(heaviest, weight);
    }
    for (int64_t user = 0; user < top->block->users; user++) {
        if (!top->open[user])
            continue;
        number lowest = targets[top->block->test.begin[user] + top->open[user] - 1];
        /* negated, so that what is not a number skips nothing */
        if (!(highest(top, top->lengths[user], longest, heaviest) < lowest))
            top->chosen[size++] = user;
    }
    return size;
}

/* Write NaN over the masked items at places low..high - 1, and up to a whole panel; return its end. */
static int64_t mask_places(Lists *masked, int64_t user, number *scores, int64_t low, int64_t high) {
    int64_t next = masked->next[user], end = masked->end[user], stop = high - low;
    while (next < end && masked->items[next] < low) /* in chunks that were skipped */
        next++;
    masked->next[user] = overwrite(NAN, scores, low, high, masked->items, next, end);
    while (stop % PANEL)
        scores[stop++] = NAN;
    return stop;
}

/* Sort the masked items of the users that are left after the first bucket. Return DONE or NO_MEMORY. */
static int64_t sort_masked(Top *top) {
    Lists *masked = &top->block->train;
    int64_t buckets = (top->ordered->size + BUCKET - 1) / BUCKET, longest = 0;
    for (int64_t user = 0; user < top->block->users; user++)
        longest = most(longest, masked->end[user] - masked->begin[user]);
    int64_t *starts = malloc((buckets + 1) * sizeof *starts + longest * sizeof(int32_t));
    if (!starts)
        return NO_MEMORY;
    for (int64_t user = 0; user < top->block->users; user++) {
        int32_t *items = (int32_t *)masked->items + masked->begin[user];
        if (top->open[user])
            sort_places(
                items, masked->end[user] - masked->begin[user], buckets, starts, (int32_t *)(starts + buckets + 1));
    }
    free(starts);
    return DONE;
}

/* Return where the chunk ends that begins at `low`; chunks grow, since later ones are for fewer users. */
static int64_t end_of_chunk(const Top *top, int64_t low, int64_t stop) {
    int64_t size = most(BUCKET, low / top->growth / BUCKET * BUCKET);
    return least(low + least(size, top->tiles.chunk), stop);
}

/* Return whether the lists of a call, and the order of its items, are such that they can be followed. */
static int is_valid_call(const Block *block, const Matrix *users, const Matrix *items, const Ordered *ordered, int64_t start) {
    int valid = is_valid(block) && users->columns >= 1 && ordered->size == items->rows && start % BUCKET == 0;
    for (int64_t place = 0; place < ordered->size && valid; place++)
        valid = ordered->items[place] >= 0 && ordered->items[place] < items->rows;
    return valid;
}

#endif
