/* SPDX-License-Identifier: MIT
 * gl.h: the few OpenGL types that cudaGL.h names, so that its entry points can be declared without OpenGL installed. */
#ifndef CUAUDIT_GL_GL_H
#define CUAUDIT_GL_GL_H
typedef unsigned int GLuint;
typedef unsigned int GLenum;
#endif
