// SPDX-License-Identifier: Apache-2.0
/* Finds and loads a library with NVML's functions. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/nvml.h"
#include "agent/probe.h"
#include "agent/probe_nvml.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/xalloc.h"

/* Each as the newest of its versions that the library has; the first four must be there. */
static const struct {
	size_t at;
	const char *names[3];
} symbols[] = {
#define F(member) offsetof(struct nvml_functions, member)
	{ F(init), { "nvmlInit_v2", "nvmlInit" } },
	{ F(count), { "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount" } },
	{ F(by_index), { "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex" } },
	{ F(uuid), { "nvmlDeviceGetUUID" } },
	{ F(shutdown), { "nvmlShutdown" } },
	{ F(error), { "nvmlErrorString" } },
	{ F(serial), { "nvmlDeviceGetSerial" } },
	{ F(pci),
	  { "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo" } },
	{ F(minor_number), { "nvmlDeviceGetMinorNumber" } },
	{ F(utilization), { "nvmlDeviceGetUtilizationRates" } },
	{ F(memory), { "nvmlDeviceGetMemoryInfo" } },
	{ F(memory_v2), { "nvmlDeviceGetMemoryInfo_v2" } },
	{ F(samples), { "nvmlDeviceGetProcessUtilization" } },
	{ F(mig_mode), { "nvmlDeviceGetMigMode" } },
	{ F(mig_max), { "nvmlDeviceGetMaxMigDeviceCount" } },
	{ F(mig_by_index), { "nvmlDeviceGetMigDeviceHandleByIndex" } },
	{ F(gpu_instance), { "nvmlDeviceGetGpuInstanceId" } },
	{ F(compute_instance), { "nvmlDeviceGetComputeInstanceId" } },
#undef F
};

static const char *const lists[] = { "nvmlDeviceGetComputeRunningProcesses",
				     "nvmlDeviceGetGraphicsRunningProcesses",
				     "nvmlDeviceGetMPSComputeRunningProcesses" };

static void find_processes(struct nvml *nvml)
{
	static const char *const endings[] = { "_v3", "_v2", "" };

	/* One layout for all three, so all of the newest ending that the first one has. */
	for (size_t i = 0; i < GS_ARRAY_SIZE(endings); i++) {
		for (size_t j = 0; j < GS_ARRAY_SIZE(lists); j++) {
			cleanup_free char *name = gs_asprintf("%s%s", lists[j], endings[i]);
			void *f = dlsym(nvml->library, name);

			memcpy(&nvml->f.processes[j], &f, sizeof(f));
		}
		nvml->processes_v1 = !endings[i][0];
		if (nvml->f.processes[0])
			return;
	}
}

static int find_symbols(struct nvml *nvml, const char *library, struct gs_err *err)
{
	for (size_t i = 0; i < GS_ARRAY_SIZE(symbols); i++) {
		void *f = NULL;

		for (size_t j = 0; j < 3 && symbols[i].names[j] && !f; j++)
			f = dlsym(nvml->library, symbols[i].names[j]);
		if (!f && i < 4)
			return gs_err_set(err, ENOSYS, "%s has no %s()", library,
					  symbols[i].names[0]);
		memcpy((char *)&nvml->f + symbols[i].at, &f, sizeof(f));
	}
	find_processes(nvml);
	return 0;
}

/* What dlopen() said of the first file that was there. */
struct opened {
	void *library;
	char *why;
};

/* The library @path of the tree @root: its real one, for that lies beside what it needs itself. */
static void open_in(const char *root, const char *path, struct opened *ret)
{
	cleanup_free char *real = gs_file_real_in(root, path);

	if (!real)
		return;
	ret->library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
	if (!ret->library && !ret->why)
		ret->why = gs_strdup(dlerror());
}

/* Where a library without a folder is below the root of a driver. */
static void open_below(const char *root, const char *library, struct opened *ret)
{
	static const char *const folders[] = { "/usr/lib64", "/usr/lib/x86_64-linux-gnu",
					       "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/lib64" };

	for (size_t i = 0; i < GS_ARRAY_SIZE(folders) && !ret->library; i++) {
		cleanup_free char *path = gs_asprintf("%s/%s", folders[i], library);

		open_in(root, path, ret);
	}
}

/* The host's, where we are in a container. */
static void open_hosts(const char *host, const struct gs_strv *roots, const char *library,
		       struct opened *ret)
{
	if (library[0] == '/') {
		open_in(host, library, ret);
		return;
	}
	for (size_t i = 0; i < roots->n && !ret->library; i++) {
		cleanup_free char *root = gs_asprintf("%s%s", host, roots->v[i]);

		open_below(root, library, ret);
	}
}

/* Our own, by the loader's rules first. */
static void open_ours(const struct gs_strv *roots, const char *library, struct opened *ret)
{
	cleanup_free char *real = library[0] == '/' ? probe_path(library) : gs_strdup(library);

	ret->library = dlopen(real, RTLD_NOW | RTLD_LOCAL);
	if (!ret->library && !ret->why)
		ret->why = gs_strdup(dlerror());
	for (size_t i = 0; library[0] != '/' && !ret->library && i < roots->n; i++) {
		cleanup_free char *root = probe_path(roots->v[i]);

		if (roots->v[i][0])
			open_below(root, library, ret);
	}
}

int probe_nvml_open(const struct vendor_side *side, const char *library, struct nvml **ret,
		    struct gs_err *err)
{
	const struct gs_strv *roots = &vendor_side_rules(side)->roots;
	const char *host = probe_host();
	struct nvml *nvml = gs_calloc(1, sizeof(*nvml));
	struct opened opened = { 0 };
	int r = 0;

	if (host)
		open_hosts(host, roots, library, &opened);
	if (!opened.library)
		open_ours(roots, library, &opened);
	nvml->library = opened.library;
	if (nvml->library)
		r = find_symbols(nvml, library, err);
	else
		r = gs_err_set(err, ENOENT, "%s", opened.why);
	free(opened.why);
	if (r < 0) {
		probe_nvml_free(nvml);
		return r;
	}
	*ret = nvml;
	return 0;
}

void probe_nvml_free(struct nvml *nvml)
{
	if (!nvml)
		return;
	if (nvml->initialised && nvml->f.shutdown)
		(void)nvml->f.shutdown();
	if (nvml->library)
		(void)dlclose(nvml->library);
	free(nvml);
}

const char *nvml_error(const struct nvml *nvml, int code)
{
	const char *text = nvml->f.error ? nvml->f.error(code) : NULL;

	return text ? text : "an error without a text";
}
