/* SPDX-License-Identifier: Apache-2.0 */
/* Running a test's loop for a while. */
#ifndef GPUSHARE_TESTS_UNIT_LOOP_H
#define GPUSHARE_TESTS_UNIT_LOOP_H

#include <stdbool.h>

#include <uv.h>

static inline void loop_time_is_over(uv_timer_t *timer)
{
	*(bool *)timer->data = true;
	uv_stop(timer->loop);
}

/* Runs it until somebody stops it, @ms at most; true: that was over first. */
static inline bool loop_run(uv_loop_t *loop, unsigned int ms)
{
	bool over = false;
	uv_timer_t timer;

	(void)uv_timer_init(loop, &timer);
	timer.data = &over;
	(void)uv_timer_start(&timer, loop_time_is_over, ms, 0);
	(void)uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&timer, NULL);
	(void)uv_run(loop, UV_RUN_NOWAIT);
	return over;
}

#endif
