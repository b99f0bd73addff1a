// SPDX-License-Identifier: Apache-2.0
/*
 * A library with NVML's functions for cards that do not exist. What they do stands in the file
 * $GPUSHARE_PROBE_ROOT/nvml.ctl, which is read at every call; a line each:
 *
 *   cards N            how many (2 at most 3); card i has the minor number 3, 5 or 7
 *   mig I              card I is cut: slices in its places 0 and 2
 *   util N, used N, total N, reserved N
 *   process PID MEMORY one of those on every card
 *   sample PID TIME SM DECODER
 *                      what it did until TIME, in percent
 *   stale 1            samples come however old they are
 *   hang FUNCTION      it never comes back
 *   die FUNCTION       it aborts
 *   error FUNCTION N   it gives this code;
 *   error FUNCTION N I only for card I
 *   print FUNCTION     it prints a line to stdout first
 *
 * FUNCTION is without "nvml" and version. Built with -DOLD it has only functions without a version,
 * with their older structures, as other makers' libraries have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef OLD
#define V2(name) name
#define V3(name) name
#else
#define V2(name) name##_v2
#define V3(name) name##_v3
#endif

struct handle {
	int card, slice; /* slice -1: the whole card */
};

static struct handle cards[3] = { { 0, -1 }, { 1, -1 }, { 2, -1 } };
#ifndef OLD
static struct handle slices[3][3] = { { { 0, 0 }, { 0, 1 }, { 0, 2 } },
				      { { 1, 0 }, { 1, 1 }, { 1, 2 } },
				      { { 2, 0 }, { 2, 1 }, { 2, 2 } } };
#endif
static int initialised;

static FILE *control(void)
{
	const char *root = getenv("GPUSHARE_PROBE_ROOT");
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/nvml.ctl", root ? root : "");
	return fopen(path, "re");
}

/* The number behind "@key " in the control file. */
static unsigned long long value(const char *key, unsigned long long otherwise)
{
	char line[256], name[64];
	unsigned long long n;
	FILE *f = control();

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %llu", name, &n) == 2 && strcmp(name, key) == 0)
			otherwise = n;
	if (f)
		(void)fclose(f);
	return otherwise;
}

/* @card: the one that is asked about; -1: none, or all alike */
static int enter_for(const char *function, int card)
{
	char line[256], what[64], name[64];
	FILE *f = control();
	int code = 0, n, only;

	while (f && fgets(line, sizeof(line), f)) {
		int fields = sscanf(line, "%63s %63s %d %d", what, name, &n, &only);

		if (fields < 2 || strcmp(name, function) != 0)
			continue;
		if (strcmp(what, "hang") == 0)
			for (;;)
				(void)pause();
		if (strcmp(what, "die") == 0)
			abort();
		if (strcmp(what, "print") == 0) {
			(void)puts("{\"seq\":1} is what a library prints");
			(void)fflush(stdout);
		}
		if (strcmp(what, "error") == 0 && (fields == 3 || (fields == 4 && only == card)))
			code = n;
	}
	if (f)
		(void)fclose(f);
	/* NVML_ERROR_UNINITIALIZED */
	if (!code && !initialised && strcmp(function, "Init") != 0)
		code = 1;
	return code;
}

static int enter(const char *function)
{
	return enter_for(function, -1);
}

int V2(nvmlInit)(void);
int V2(nvmlInit)(void)
{
	int r = enter("Init");

	if (!r)
		initialised = 1;
	return r;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
	initialised = 0;
	return enter("Init");
}

const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
	return code == 15 ? "GPU is lost" : code == 1 ? "Uninitialized" : "Some error";
}

int V2(nvmlDeviceGetCount)(unsigned int *n);
int V2(nvmlDeviceGetCount)(unsigned int *n)
{
	int r = enter("DeviceGetCount");

	*n = (unsigned int)value("cards", 2);
	return r;
}

int V2(nvmlDeviceGetHandleByIndex)(unsigned int i, void **handle);
int V2(nvmlDeviceGetHandleByIndex)(unsigned int i, void **handle)
{
	*handle = &cards[i];
	return enter_for("DeviceGetHandleByIndex", (int)i);
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned int size);
int nvmlDeviceGetUUID(void *handle, char *text, unsigned int size)
{
	const struct handle *h = handle;

	if (h->slice < 0)
		(void)snprintf(text, size, "GPU-%04d", h->card);
	else
		(void)snprintf(text, size, "MIG-%04d-%d", h->card, h->slice);
	return enter_for("DeviceGetUUID", h->card);
}

int nvmlDeviceGetMinorNumber(void *handle, unsigned int *n);
int nvmlDeviceGetMinorNumber(void *handle, unsigned int *n)
{
	*n = 3 + 2 * (unsigned int)((const struct handle *)handle)->card;
	return enter("DeviceGetMinorNumber");
}

int V3(nvmlDeviceGetPciInfo)(void *handle, void *info);
int V3(nvmlDeviceGetPciInfo)(void *handle, void *info)
{
	struct {
		char legacy[16];
		unsigned int domain, bus, device, id, subsystem;
#ifdef OLD
		unsigned int reserved[4];
#else
		char bus_id[32];
#endif
	} pci = { .domain = 0, .bus = 0x3b, .id = 1 };

	pci.device = (unsigned int)((const struct handle *)handle)->card;
#ifndef OLD
	(void)snprintf(pci.bus_id, sizeof(pci.bus_id), "00000000:3B:%02X.0", pci.device);
#endif
	memcpy(info, &pci, sizeof(pci));
	return enter("DeviceGetPciInfo");
}

int nvmlDeviceGetUtilizationRates(void *handle, unsigned int *rates);
int nvmlDeviceGetUtilizationRates(void *handle, unsigned int *rates)
{
	/* NVML has none for slices. */
	const struct handle *h = handle;

	if (h->slice >= 0)
		return 3;
	rates[0] = (unsigned int)value("util", 0);
	rates[1] = 0;
	return enter_for("DeviceGetUtilizationRates", h->card);
}

int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *info);
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *info)
{
	(void)handle;
	info[0] = value("total", 1000);
	info[2] = value("used", 0) + value("reserved", 0);
	info[1] = info[0] - info[2];
	return enter("DeviceGetMemoryInfo");
}

#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *handle, unsigned int *info);
int nvmlDeviceGetMemoryInfo_v2(void *handle, unsigned int *info)
{
	unsigned long long *v = (unsigned long long *)(info + 2);

	(void)handle;
	/* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
	if (*info != (40 | 2U << 24))
		return 25;
	v[0] = value("total", 1000);
	v[1] = value("reserved", 0);
	v[3] = value("used", 0);
	v[2] = v[0] - v[1] - v[3];
	return enter("DeviceGetMemoryInfo");
}

int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending);
int nvmlDeviceGetMigMode(void *handle, unsigned int *current, unsigned int *pending)
{
	*current = value("mig", 99) == (unsigned int)((const struct handle *)handle)->card;
	*pending = *current;
	return enter("DeviceGetMigMode");
}

int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *n);
int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned int *n)
{
	(void)handle;
	*n = 3;
	return enter("DeviceGetMaxMigDeviceCount");
}

int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int i, void **slice);
int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned int i, void **slice)
{
	if (i == 1)
		return 6;
	*slice = &slices[((const struct handle *)handle)->card][i];
	return enter("DeviceGetMigDeviceHandleByIndex");
}

int nvmlDeviceGetGpuInstanceId(void *handle, unsigned int *n);
int nvmlDeviceGetGpuInstanceId(void *handle, unsigned int *n)
{
	*n = 5 + (unsigned int)((const struct handle *)handle)->slice;
	return enter("DeviceGetGpuInstanceId");
}

int nvmlDeviceGetComputeInstanceId(void *handle, unsigned int *n);
int nvmlDeviceGetComputeInstanceId(void *handle, unsigned int *n)
{
	(void)handle;
	*n = 0;
	return enter("DeviceGetComputeInstanceId");
}
#endif

struct process {
	unsigned int pid;
	unsigned long long memory;
#ifndef OLD
	unsigned int gi, ci;
#endif
};

static int processes(unsigned int *n, struct process *v)
{
	char line[256];
	unsigned long pid;
	unsigned long long memory;
	unsigned int room = *n;
	FILE *f = control();

	*n = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "process %lu %llu", &pid, &memory) != 2)
			continue;
		if (*n < room) {
			memset(&v[*n], 0xff, sizeof(*v));
			v[*n].pid = (unsigned int)pid;
			v[*n].memory = memory;
		}
		++*n;
	}
	if (f)
		(void)fclose(f);
	return *n > room ? 7 : enter("Processes");
}

int V3(nvmlDeviceGetComputeRunningProcesses)(void *handle, unsigned int *n, struct process *v);
int V3(nvmlDeviceGetComputeRunningProcesses)(void *handle, unsigned int *n, struct process *v)
{
	(void)handle;
	return processes(n, v);
}

/* The same ones: a program may compute and draw. */
int V3(nvmlDeviceGetGraphicsRunningProcesses)(void *handle, unsigned int *n, struct process *v);
int V3(nvmlDeviceGetGraphicsRunningProcesses)(void *handle, unsigned int *n, struct process *v)
{
	(void)handle;
	return processes(n, v);
}

#ifndef OLD
struct sample {
	unsigned int pid;
	unsigned long long time;
	unsigned int sm, memory, encoder, decoder;
};

int nvmlDeviceGetProcessUtilization(void *handle, struct sample *v, unsigned int *n,
				    unsigned long long seen);
int nvmlDeviceGetProcessUtilization(void *handle, struct sample *v, unsigned int *n,
				    unsigned long long seen)
{
	unsigned int room = *n;
	char line[256];
	FILE *f;

	/* NVML has none for slices. */
	if (((const struct handle *)handle)->slice >= 0)
		return 3;
	f = control();
	*n = 0;
	while (f && fgets(line, sizeof(line), f)) {
		struct sample s = { 0 };

		if (sscanf(line, "sample %u %llu %u %u", &s.pid, &s.time, &s.sm, &s.decoder) != 4 ||
		    (s.time <= seen && !value("stale", 0)))
			continue;
		if (*n < room)
			v[*n] = s;
		++*n;
	}
	if (f)
		(void)fclose(f);
	if (*n > room)
		return 7;
	return *n ? enter("DeviceGetProcessUtilization") : 6;
}
#endif
