/* A loop of foreground requests and background steps on a simulated clock: a request of 1 ms every 10 ms, steps of 4 MiB that take
 * 5 ms once nobody has asked for anything for 3 ms. Built and run by tests/c.rs. */
#include <inttypes.h>
#include <stdio.h>

#include "idlewise.h"

#define MS UINT64_C(1000000)

int main(void)
{
    idlewise_driver *driver = idlewise_waiting(3 * MS, 4 << 20, 2 * MS, 0);
    uint64_t now = 0, free_at = 0;

    for (uint64_t arrival = 10 * MS; arrival <= 10000 * MS; arrival += 10 * MS) {
        /* What fits before the next request arrives. */
        while (now < arrival) {
            idlewise_next next = idlewise_ask(driver, now);
            if (next.kind == IDLEWISE_STEP) {
                idlewise_step_began(driver, now, next.bytes);
                if (now + 5 * MS > arrival)
                    idlewise_arrived(driver, arrival); /* A collision. */
                now += 5 * MS;
                idlewise_step_ended(driver, now);
            } else if (next.kind == IDLEWISE_ASK_AT && next.at_ns < arrival) {
                now = next.at_ns;
            } else {
                break;
            }
        }
        if (now <= arrival) {
            now = arrival;
            idlewise_arrived(driver, now);
        }
        free_at = now + 1 * MS;
        idlewise_completed(driver, free_at, arrival);
        now = free_at;
    }

    idlewise_measured measured = idlewise_get_measured(driver);
    idlewise_free(driver);
    idlewise_free(NULL);
    printf("%" PRIu64 " requests, %" PRIu64 " steps, %" PRIu64 " collisions, mean slowdown %" PRIu64 " us\n",
           measured.foreground_requests, measured.steps, measured.collisions, measured.mean_slowdown_ns / 1000);
    return 0;
}
