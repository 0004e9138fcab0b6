// SPDX-License-Identifier: MIT
// named_extension.c: what the tests of Python load and what looks like Python; a definition chooses the program.
//
// newer_python (NEWER_PYTHON): a program that contains what looks like a CPython of a version that does not exist yet. It loses an event.
//
// named_extension: a Python extension that calls the driver, and that calls Python. One file serves CPython 3.11 and newer.
#if defined(NEWER_PYTHON)
#include <cuda.h>
#include <string.h>

const unsigned long Py_Version = 0x036300f0;  // 3.99.0 final
char _PyRuntime[1024];
char PyCode_Type[8], PyUnicode_Type[8], PyBytes_Type[8];
const char *Py_GetVersion(void);
const char *Py_GetVersion(void) { return "3.99.0"; }

int main(void) {
  CUcontext context;
  CUevent event;
  memcpy(_PyRuntime, "xdebugpy", 8);
  if (cuInit(0) != CUDA_SUCCESS || cuCtxCreate(&context, NULL, 0, 0) != CUDA_SUCCESS) return 1;
  if (cuEventCreate(&event, 0) != CUDA_SUCCESS) return 1;
  cuCtxDestroy(context);
  return 0;
}
#else
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <cuda.h>

static PyObject *make_stream(PyObject *self, PyObject *none) {
  CUstream stream = NULL;
  (void)self;
  (void)none;
  if (cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
    PyErr_SetString(PyExc_RuntimeError, "no stream");
    return NULL;
  }
  return PyLong_FromVoidPtr(stream);
}

static PyObject *end_stream(PyObject *self, PyObject *stream) {
  (void)self;
  if (cuStreamDestroy((CUstream)PyLong_AsVoidPtr(stream)) != CUDA_SUCCESS) {
    PyErr_SetString(PyExc_RuntimeError, "the stream stays");
    return NULL;
  }
  Py_RETURN_NONE;
}

static PyObject *call(PyObject *self, PyObject *callable) {
  PyObject *const result = PyObject_CallFunctionObjArgs(callable, Py_None, NULL);
  (void)self;
  return result;
}

static PyMethodDef methods[] = {
    {"make_stream", make_stream, METH_NOARGS, ""},
    {"end_stream", end_stream, METH_O, ""},
    {"call", call, METH_O, ""},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "named_extension", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_named_extension(void) { return PyModule_Create(&module); }
#endif
