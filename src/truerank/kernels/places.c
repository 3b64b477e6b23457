/* Lists of items that are not counted, by their places in another order of the catalogue. */

#include "places.h"

#include <stdlib.h>
#include <string.h>

#include "kernels.h"

static int is_within(const Lists *lists, int64_t user) {
    int64_t begin = lists->begin[user], end = lists->end[user];
    return 0 <= begin && begin <= end && end <= lists->size;
}

/* Return whether one user's items ascend within the catalogue. */
static int is_in_order(const Lists *lists, int64_t user, int64_t n_items) {
    int64_t first = lists->begin[user], last = lists->end[user];
    int is_wrong = first < last && (lists->items[first] < 0 || lists->items[last - 1] >= n_items);
    for (int64_t j = first + 1; j < last; j++)
        is_wrong |= lists->items[j] < lists->items[j - 1];
    return !is_wrong;
}

/* Return whether a user's list, which ascends, has an item. */
static int has(const Lists *lists, int64_t user, int32_t item) {
    int64_t low = lists->begin[user], high = lists->end[user];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (lists->items[middle] < item)
            low = middle + 1;
        else
            high = middle;
    }
    return low < lists->end[user] && lists->items[low] == item;
}

/* Write the places of one user's items from both lists, those in the first bucket first.

   Most users of a trained model never need the others, so sorting these is left for later. */
static void place_user(const Block *block, int64_t user, const int32_t *places, int32_t *out) {
    const Lists *both[] = {&block->train, &block->test};
    int64_t front = 0, back = 0;
    for (int i = 0; i < 2; i++)
        back += both[i]->end[user] - both[i]->begin[user];
    for (int i = 0; i < 2; i++)
        for (int64_t j = both[i]->begin[user]; j < both[i]->end[user]; j++) {
            int32_t place = places[both[i]->items[j]];
            int is_first = place < BUCKET;
            out[is_first ? front : back - 1] = place;
            front += is_first;
            back -= !is_first;
        }
}

void sort_places(int32_t *places, int64_t size, int64_t buckets, int64_t *starts, int32_t *spare) {
    memset(starts, 0, (buckets + 1) * sizeof *starts);
    for (int64_t j = 0; j < size; j++)
        starts[places[j] / BUCKET + 1]++;
    for (int64_t bucket = 0; bucket < buckets; bucket++)
        starts[bucket + 1] += starts[bucket];
    for (int64_t j = 0; j < size; j++)
        spare[starts[places[j] / BUCKET]++] = places[j];
    memcpy(places, spare, size * sizeof *places);
}

int64_t place_lists(Block *block, const int32_t *places, int64_t n_items, int32_t *placed) {
    Lists *train = &block->train, *test = &block->test;
    for (int64_t item = 0; item < n_items; item++)
        if (places[item] < 0 || places[item] >= n_items)
            return INVALID;
    for (int64_t user = 0; user < block->users; user++) {
        if (!is_within(train, user) || !is_within(test, user))
            return INVALID;
        train->next[user] = is_in_order(train, user, n_items) ? train->end[user] : train->begin[user];
        test->next[user] = is_in_order(test, user, n_items) ? test->end[user] : test->begin[user];
        if (train->next[user] < train->end[user] || test->next[user] < test->end[user])
            break; /* the caller notices */
        for (int64_t j = test->begin[user]; j < test->end[user]; j++)
            block->seen[j] = has(train, user, test->items[j]);
        place_user(block, user, places, placed + train->begin[user] + test->begin[user]);
    }
    return DONE;
}
