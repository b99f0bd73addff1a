// SPDX-License-Identifier: Apache-2.0
/*
 * Maps a card over memory that is in use, from many threads at once:
 *
 *	mapfixed NODE THREADS TIMES [go=FILE] [signals=MS]
 *
 * Opens NODE, says "ready", waits until FILE exists. Then each thread maps the card over a page of
 * its own that holds something, and that again over it, TIMES times. mmap takes the old mapping
 * away before it asks the driver: if that says no, a hole is left. signals: an alarm that a handler
 * serves, every so many milliseconds. Prints "maps=N failed=N holes=N lost=N errno=NAME": failed
 * calls, pages without a mapping after one, pages that held something else; ends with 1 if one of
 * them is not 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define MAX_THREADS 256

static size_t page;
static int fd;
static unsigned int times;
static char *area;
static _Atomic unsigned int maps, fails, holes, lost, first_errno;

static void on_alarm(int sig)
{
	(void)sig;
}

static void look(unsigned int line, int ok)
{
	if (!ok) {
		fprintf(stderr, "mapfixed: line %u: %s\n", line, strerror(errno));
		exit(2);
	}
}

#define CHECK(what) look(__LINE__, what)

/* After a call that failed: what is there now? */
static void failed(char *at, uint64_t pattern)
{
	unsigned int none = 0;

	atomic_compare_exchange_strong(&first_errno, &none, (unsigned int)errno);
	fails++;
	if (msync(at, page, MS_ASYNC) < 0)
		holes++;
	else if (*(volatile uint64_t *)(void *)at != pattern)
		lost++;
	CHECK(mmap(at, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == at);
}

static void *work(void *data)
{
	uint64_t number = (uintptr_t)data;
	char *at = area + number * page;

	for (unsigned int i = 0; i < times; i++) {
		uint64_t pattern = number << 32 | (i + 1);

		*(volatile uint64_t *)(void *)at = pattern;
		maps++;
		if (mmap(at, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != at) {
			failed(at, pattern);
			continue;
		}
		/* The card's page, which nobody writes to, has only zeroes. */
		if (*(volatile uint64_t *)(void *)at)
			lost++;
		CHECK(mmap(at, page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval every = { 0 };
	pthread_t threads[MAX_THREADS];
	const char *go = NULL;
	unsigned int count;

	if (argc < 4) {
		fputs("usage: mapfixed NODE THREADS TIMES [go=FILE] [signals=MS]\n", stderr);
		return 2;
	}
	page = (size_t)sysconf(_SC_PAGESIZE);
	count = (unsigned int)atoi(argv[2]);
	times = (unsigned int)atoi(argv[3]);
	CHECK(count <= MAX_THREADS);
	for (int i = 4; i < argc; i++) {
		if (strncmp(argv[i], "go=", 3) == 0)
			go = argv[i] + 3;
		else if (strncmp(argv[i], "signals=", 8) == 0)
			every.it_interval.tv_usec = 1000 * (suseconds_t)atoi(argv[i] + 8);
	}
	every.it_value = every.it_interval;

	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	area = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	puts("ready");
	(void)fflush(stdout);
	while (go && access(go, F_OK) < 0)
		usleep(1000);
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);

	for (uintptr_t i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (unsigned int i = 0; i < count; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	printf("maps=%u failed=%u holes=%u lost=%u errno=%s\n", maps, fails, holes, lost,
	       first_errno ? strerrorname_np((int)first_errno) : "0");
	return fails || holes || lost;
}
