/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handlers: a shared object that test_quiet_load loads. Its constructor installs a handler, as libpsm does, then calls a function of the
 * program, as another thread of it might run meanwhile. The variable has the function's address.
 */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

static void handle(int number) { (void)number; }

static __attribute__((constructor)) void install(void)
{
    const char *address = getenv("WEFT_TEST_MEANWHILE");
    void (*meanwhile)(void);
    signal(SIGUSR1, handle);
    signal(SIGTERM, handle);
    if (!address)
        return;
    meanwhile = (void (*)(void))(uintptr_t)strtoull(address, NULL, 16);
    meanwhile();
}
