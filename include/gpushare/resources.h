/* SPDX-License-Identifier: Apache-2.0 */
/* The resources that nodes offer through us, as pods ask for them. */
#ifndef GPUSHARE_RESOURCES_H
#define GPUSHARE_RESOURCES_H

/* A share of a card that a shadow pod holds; a card whose holder is away. */
#define GS_RESOURCE_SHARE "gpushare/share-gpu"
#define GS_RESOURCE_SPOT "gpushare/spot-gpu"

/* Over-sold CPU in thousandths, and memory in MiB. */
#define GS_RESOURCE_VCPU "gpushare/vcpu"
#define GS_RESOURCE_VMEM "gpushare/vmem"

#endif
