/* SPDX-License-Identifier: BSD-3-Clause
 *
 * modex: the keys and values that another rank has put into its page, or that mpirun has brought from another host (launch/modex_cache).
 * The first byte is the length of the key that is looked for.
 */
#include "launch/modex_cache.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, size};
    uint16_t length;
    uint8_t key_bytes;
    size_t bytes;

    fuzz_take(&in, &key_bytes, 1);
    char *key = fuzz_text(in.at, in.left < key_bytes ? in.left : key_bytes);
    fuzz_take(&in, key, strlen(key) < in.left ? strlen(key) : in.left);
    char *modex = fuzz_take_copy(&in, WEFT_MODEX_CAPACITY, &bytes);
    const char *found = weft_modex_find(modex, (uint32_t)bytes, key, &length);
    if (found && (found < modex || found + length > modex + bytes))
        abort();
    free(modex);
    free(key);
    return 0;
}
