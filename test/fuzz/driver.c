/* SPDX-License-Identifier: BSD-3-Clause
 *
 * driver: main of a harness without libFuzzer. Replays files, or all files of folders, given as arguments; without any, the kept inputs of
 * this harness (test/fuzz/corpus/NAME). Each input is handled whole, cut off behind each of its first bytes, and with single bytes changed
 * (a fixed sequence); of a slow harness fewer (fuzz_stride). An input that takes longer than INPUT_S ends the program, as an endless loop
 * would not.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"
#include "test/fuzz/fuzz.h"

#define INPUT_S 60    /* generous: sanitizers, busy machines */
#define CUTS_MAX 256  /* cut inputs per input */
#define CHANGES 256   /* changed inputs per input */

__attribute__((weak)) unsigned fuzz_stride = 1;
static unsigned long inputs, runs;

/* Handles a copy of just that size. */
static void handle(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        abort();
    if (size)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    runs++;
}

static void handle_changed(uint8_t *data, size_t size)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, ' ', '\n', '9'};
    uint32_t random = 1;

    for (unsigned i = 0; i < CHANGES / fuzz_stride && size; i++) {
        random = random * 1664525u + 1013904223u;
        uint8_t *at = &data[(random >> 8) % size], kept = *at;
        *at = values[random >> 29];
        handle(data, size);
        *at = kept;
    }
}

static int replay_file(const char *path)
{
    struct stat stat;
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    int rc = file && fstat(fileno(file), &stat) == 0 && (data = malloc((size_t)stat.st_size + 1)) ? 0 : 1;

    if (!rc)
        rc = fread(data, 1, (size_t)stat.st_size, file) != (size_t)stat.st_size;
    if (file)
        fclose(file);
    if (rc) {
        printf("cannot read %s\n", path);
    } else {
        printf("%s\n", path); /* the last line of a run that crashed */
        fflush(stdout);
        alarm(INPUT_S);
        handle(data, (size_t)stat.st_size);
        for (size_t cut = 0; cut < (size_t)stat.st_size && cut < CUTS_MAX; cut += fuzz_stride)
            handle(data, cut);
        handle_changed(data, (size_t)stat.st_size);
        alarm(0);
        inputs++;
    }
    free(data);
    return rc;
}

static int replay(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    char name[4096];
    int rc = 0;

    if (!folder)
        return replay_file(path);
    while ((entry = readdir(folder))) {
        if (*entry->d_name == '.')
            continue;
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        rc |= replay_file(name);
    }
    closedir(folder);
    return rc;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    char kept[4096];
    int rc = 0;

    if (!strncmp(name, "lt-", 3)) /* libtool's name of a program that is not installed */
        name += 3;
    snprintf(kept, sizeof(kept), "%s/test/fuzz/corpus/%s", getenv("WEFT_TEST_SOURCE") ? getenv("WEFT_TEST_SOURCE") : ".", name);
    for (int i = 1; i < argc; i++)
        rc |= replay(argv[i]);
    if (argc < 2)
        rc = replay(kept);
    printf("%lu inputs, handled %lu times\n", inputs, runs);
    return rc || !inputs;
}
