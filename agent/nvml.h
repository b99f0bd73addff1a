/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVML's binary interface that we use, written down from its documentation: the library
 * is loaded while running, and nothing of a vendor is needed to build. Other makers' libraries
 * export the same functions; what one lacks is NULL.
 */
#ifndef GPUSHARE_AGENT_NVML_H
#define GPUSHARE_AGENT_NVML_H

#include <stdint.h>

#define NVML_OK 0
#define NVML_NOT_SUPPORTED 3
#define NVML_NOT_FOUND 6
#define NVML_INSUFFICIENT_SIZE 7
#define NVML_DRIVER_NOT_LOADED 9

/* An amount that the driver does not tell. */
#define NVML_NOT_AVAILABLE UINT64_MAX

#define NVML_TEXT_MAX 96 /* the longest UUID or serial number, of slices too */

typedef void *nvml_device;

/* nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3(); before that it ended behind four reserved words. */
struct nvml_pci {
	char legacy[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

struct nvml_utilization {
	unsigned int gpu, memory; /* percent */
};

struct nvml_memory {
	unsigned long long total, free,
		used; /* bytes; used with what the driver keeps for itself */
};

/* nvmlMemory_v2_t: what the driver keeps stands apart. */
struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};
#define NVML_MEMORY_V2 (sizeof(struct nvml_memory_v2) | 2U << 24)

/* nvmlProcessInfo_t of the functions ending in _v2 and _v3. */
struct nvml_process {
	unsigned int pid;
	unsigned long long memory;
	unsigned int gpu_instance, compute_instance;
};

/* That of the functions without an ending. */
struct nvml_process_v1 {
	unsigned int pid;
	unsigned long long memory;
};

/* nvmlProcessUtilizationSample_t: what a process did in a moment that ended at @time_us. */
struct nvml_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder; /* percent */
};

typedef int (*nvml_processes_fn)(nvml_device, unsigned int *count, void *infos);

struct nvml_functions {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error)(int);
	int (*count)(unsigned int *);
	int (*by_index)(unsigned int, nvml_device *);
	int (*uuid)(nvml_device, char *, unsigned int);
	int (*serial)(nvml_device, char *, unsigned int);
	int (*pci)(nvml_device, struct nvml_pci *);
	int (*minor_number)(nvml_device, unsigned int *);
	int (*utilization)(nvml_device, struct nvml_utilization *);
	int (*memory)(nvml_device, struct nvml_memory *);
	int (*memory_v2)(nvml_device, struct nvml_memory_v2 *);
	/* Compute, graphics and MPS clients; all of one layout. */
	nvml_processes_fn processes[3];
	/* The samples after the time @seen; *count says how many there is room for. */
	int (*samples)(nvml_device, struct nvml_sample *, unsigned int *count,
		       unsigned long long seen);
	int (*mig_mode)(nvml_device, unsigned int *current, unsigned int *pending);
	int (*mig_max)(nvml_device, unsigned int *);
	int (*mig_by_index)(nvml_device, unsigned int, nvml_device *);
	int (*gpu_instance)(nvml_device, unsigned int *);
	int (*compute_instance)(nvml_device, unsigned int *);
};

struct nvml {
	void *library;
	int initialised;
	int processes_v1; /* the layout of the process lists */
	struct nvml_functions f;
};

#endif
