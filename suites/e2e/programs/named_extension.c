// SPDX-License-Identifier: MIT
// named_extension.c: a Python extension that calls the driver, and that calls Python. One file serves CPython 3.11 and newer.
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
