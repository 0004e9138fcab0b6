/* SPDX-License-Identifier: MIT
 * egl.h: the few EGL types that cudaEGL.h names, so that its entry points can be declared without EGL installed. */
#ifndef CUAUDIT_EGL_EGL_H
#define CUAUDIT_EGL_EGL_H
#include <stdint.h>
typedef int32_t EGLint;
typedef unsigned int EGLBoolean;
typedef void* EGLDisplay;
typedef void* EGLStreamKHR;
typedef void* EGLImageKHR;
typedef void* EGLSyncKHR;
typedef void* EGLImage;
typedef void* EGLSync;
#endif
