// SPDX-License-Identifier: Apache-2.0
/*
 * spin: threads that are always ready to run and never sleep, for a cgroup that may hardly run.
 *
 *	spin THREADS
 *
 * Each reads /dev/zero again and again, in the kernel nearly all the time. Prints "spinning" when
 * all of them are there. A grace period of RCU-tasks ends only when each has been scheduled once.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char buf[1 << 16];
static int zero;

static void *run(void *unused)
{
	(void)unused;
	for (;;)
		if (read(zero, buf, sizeof(buf)) < 0)
			return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_attr_t attr;
	pthread_t thread;

	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (n <= 0 || zero < 0 || pthread_attr_init(&attr) != 0 ||
	    pthread_attr_setstacksize(&attr, 1 << 16) != 0)
		return 2;
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, &attr, run, NULL) != 0)
			return 1;
	(void)puts("spinning");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}
