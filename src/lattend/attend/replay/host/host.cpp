// What a repeated call does on the host, as a module of Python: the kind of its tensors, and calls of compiled
// code with their addresses. Each function here has a twin in Python, which says what it means and runs where
// this module was not built; see __init__.py.

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace {

using Given = PyObject *const *;
using Fast = PyObject *(*)(PyObject *, Given, Py_ssize_t);

PyCFunction fast(Fast function) { return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)); }

// An owned reference.
struct Held {
    PyObject *object = nullptr;
    explicit Held(PyObject *found = nullptr) : object(found) {}
    Held(Held &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
    Held &operator=(Held &&other) noexcept {
        std::swap(object, other.object);
        return *this;
    }
    ~Held() { Py_XDECREF(object); }
    explicit operator bool() const { return object != nullptr; }
    PyObject *release() { return std::exchange(object, nullptr); }
};

Held shared(PyObject *borrowed) {
    Py_INCREF(borrowed);
    return Held(borrowed);
}

PyObject *called(PyObject *function, Given given, Py_ssize_t count) {
    Held whole(PyTuple_New(count));
    if (!whole) return nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
        Py_INCREF(given[i]);
        PyTuple_SetItem(whole.object, i, given[i]);
    }
    return PyObject_Call(function, whole.object, nullptr);
}

// What `know` was told of torch, in its order.
enum Name {
    TENSOR, PARAMETER, DISPATCH_STACK, INTERPRETER_STACK, FORWARD_AD, IS_TRACING, IS_GRAD_ENABLED,
    IS_AUTOCAST_ENABLED, AUTOCAST_DTYPE, TOLD_OF_CUDA, FLOAT32, USES_TF32, OPTION_TYPES, OTHERWISE, NAMES
};
PyObject *known[NAMES];

// Names of attributes and devices, made once.
PyObject *dtype_, *shape_, *stride_, *data_ptr_, *is_cuda_, *is_cpu_, *is_neg_, *get_device_, *requires_grad_, *level_;
PyObject *cpu_, *cuda_;

// 1 or 0, or -1 with an exception set.
int truth(const Held &found) { return found ? PyObject_IsTrue(found.object) : -1; }

Held method(PyObject *x, PyObject *name) { return Held(PyObject_CallMethodObjArgs(x, name, nullptr)); }

bool is_tensor(PyObject *x) {
    auto type = reinterpret_cast<PyObject *>(Py_TYPE(x));
    return type == known[TENSOR] || type == known[PARAMETER];
}

// The words of a kind, and what stopped it: nothing, an exception, or a tensor that has no kind here.
enum Outcome { FOUND, FAILED, UNKNOWN };

struct Kind {
    std::vector<int64_t> words;
    bool cuda = false, float32 = false;  // of some tensor
    bool together = true;                // on one device
    int64_t device = -2;                 // of the first

    Kind() { words.reserve(64); }

    Outcome numbers(const Held &tuple) {
        if (!tuple) return FAILED;
        const Py_ssize_t size = PyTuple_Size(tuple.object);
        words.push_back(size);
        for (Py_ssize_t i = 0; i < size; ++i) {
            words.push_back(PyLong_AsLongLong(PyTuple_GetItem(tuple.object, i)));
        }
        return PyErr_Occurred() ? FAILED : FOUND;
    }

    Outcome tensor(PyObject *x) {
        if (!is_tensor(x)) return UNKNOWN;
        Held dtype(PyObject_GetAttr(x, dtype_));  // one object for each, which stays
        if (!dtype) return FAILED;
        words.push_back(reinterpret_cast<intptr_t>(dtype.object));
        float32 = float32 || dtype.object == known[FLOAT32];
        const int on_gpu = truth(Held(PyObject_GetAttr(x, is_cuda_)));
        if (on_gpu < 0) return FAILED;
        int64_t mine = -1;
        if (on_gpu) {
            Held index = method(x, get_device_);
            if (!index) return FAILED;
            mine = PyLong_AsLongLong(index.object);
        } else {
            const int on_cpu = truth(Held(PyObject_GetAttr(x, is_cpu_)));
            if (on_cpu != 1) return on_cpu < 0 ? FAILED : UNKNOWN;
        }
        words.push_back(mine);
        device = device == -2 ? mine : device;
        together = together && device == mine;
        cuda = cuda || on_gpu;
        const int negative = truth(method(x, is_neg_));  // its memory holds -x
        if (negative != 0) return negative < 0 ? FAILED : UNKNOWN;
        Outcome outcome = numbers(Held(PyObject_GetAttr(x, shape_)));
        if (outcome != FOUND) return outcome;
        Held strides = method(x, stride_), address = method(x, data_ptr_);
        if (!strides || !address) {  // a sparse tensor has neither
            PyErr_Clear();
            return UNKNOWN;
        }
        outcome = numbers(strides);
        if (outcome != FOUND) return outcome;
        words.push_back(static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(address.object) % 16));
        return PyErr_Occurred() ? FAILED : FOUND;
    }

    // All but their values, which of them are the same, and what torch is told of a GPU.
    Outcome tensors(Given given, Py_ssize_t count) {
        for (Py_ssize_t i = 0; i < count; ++i) {
            Py_ssize_t same = 0;
            while (given[same] != given[i]) ++same;
            words.push_back(same);
            if (same < i) continue;
            const Outcome outcome = tensor(given[i]);
            if (outcome != FOUND) return outcome;
        }
        for (Py_ssize_t i = 0; cuda && i < PyTuple_Size(known[TOLD_OF_CUDA]); ++i) {
            const int told = truth(Held(PyObject_CallNoArgs(PyTuple_GetItem(known[TOLD_OF_CUDA], i))));
            if (told < 0) return FAILED;
            words.push_back(told);
        }
        if (cuda && float32) {
            const int tf32 = truth(Held(PyObject_CallNoArgs(known[USES_TF32])));
            if (tf32 < 0) return FAILED;
            words.push_back(tf32);
        }
        return FOUND;
    }

    PyObject *bytes() const {
        return PyBytes_FromStringAndSize(
            reinterpret_cast<const char *>(words.data()), static_cast<Py_ssize_t>(words.size() * sizeof(int64_t)));
    }
};

// Whether anybody traces or watches what is done to tensors.
int watched() {
    int found = truth(Held(PyObject_CallNoArgs(known[DISPATCH_STACK])));
    if (found == 0) found = truth(Held(PyObject_CallNoArgs(known[INTERPRETER_STACK])));
    if (found == 0) {
        Held level(PyObject_GetAttr(known[FORWARD_AD], level_));
        if (!level) return -1;
        const long number = PyLong_AsLong(level.object);
        found = number == -1 && PyErr_Occurred() ? -1 : number >= 0;
    }
    return found == 0 ? truth(Held(PyObject_CallNoArgs(known[IS_TRACING]))) : found;
}

PyObject *know(PyObject *, Given given, Py_ssize_t count) {
    if (count != NAMES) {
        PyErr_SetString(PyExc_TypeError, "know() takes as many names as there are");
        return nullptr;
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
        Py_INCREF(given[i]);
        Py_XDECREF(std::exchange(known[i], given[i]));
    }
    Py_RETURN_NONE;
}

PyObject *tensor_signature(PyObject *, Given given, Py_ssize_t count) {
    Kind kind;
    switch (kind.tensors(given, count)) {
        case FOUND: return kind.bytes();
        case FAILED: return nullptr;
        default: break;
    }
    return called(known[OTHERWISE], given, count);
}

constexpr Py_ssize_t CAST = 3;  // q, k and v, which autocast casts

// Whether autocast is on; UNKNOWN where it would cast q, k or v.
Outcome autocast(Kind &kind, Given given, Py_ssize_t count) {
    PyObject *device = kind.cuda ? cuda_ : cpu_;
    const int on = truth(Held(PyObject_CallFunctionObjArgs(known[IS_AUTOCAST_ENABLED], device, nullptr)));
    if (on < 0) return FAILED;
    kind.words.push_back(on);
    if (!on) return FOUND;
    Held cast(PyObject_CallFunctionObjArgs(known[AUTOCAST_DTYPE], device, nullptr));
    if (!cast) return FAILED;
    for (Py_ssize_t i = 0; i < count && i < CAST; ++i) {
        Held dtype(PyObject_GetAttr(given[i], dtype_));
        if (!dtype) return FAILED;
        if (dtype.object != cast.object) return UNKNOWN;
    }
    return FOUND;
}

// Whether a gradient is wanted.
Outcome gradient(Kind &kind, Given given, Py_ssize_t count) {
    int wanted = truth(Held(PyObject_CallNoArgs(known[IS_GRAD_ENABLED])));
    if (wanted < 0) return FAILED;
    if (wanted) {
        wanted = 0;
        for (Py_ssize_t i = 0; i < count && !wanted; ++i) {
            wanted = truth(Held(PyObject_GetAttr(given[i], requires_grad_)));
            if (wanted < 0) return FAILED;
        }
    }
    kind.words.push_back(wanted);
    return FOUND;
}

Outcome plain_call(Kind &kind, PyObject *options, Given given, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(options); ++i) {
        auto type = reinterpret_cast<PyObject *>(Py_TYPE(PyTuple_GetItem(options, i)));
        const int fits = PySet_Contains(known[OPTION_TYPES], type);
        if (fits != 1) return fits < 0 ? FAILED : UNKNOWN;
        kind.words.push_back(reinterpret_cast<intptr_t>(type));
    }
    const int seen = watched();
    if (seen != 0) return seen < 0 ? FAILED : UNKNOWN;
    Outcome outcome = kind.tensors(given, count);
    if (outcome == FOUND && !kind.together) return UNKNOWN;
    if (outcome == FOUND) outcome = autocast(kind, given, count);
    return outcome == FOUND ? gradient(kind, given, count) : outcome;
}

PyObject *plain_signature(PyObject *, Given given, Py_ssize_t count) {
    if (count < 2 || !PyTuple_Check(given[0])) {
        PyErr_SetString(PyExc_TypeError, "plain_signature() takes a tuple of options, and tensors");
        return nullptr;
    }
    Kind kind;
    switch (plain_call(kind, given[0], given + 1, count - 1)) {
        case FOUND: return kind.bytes();
        case FAILED: return nullptr;
        default: Py_RETURN_NONE;
    }
}

// Calls of compiled code

// Puts the addresses of tensors into words, and numbers as they are. False with an exception set.
struct Place {
    size_t word;
    Py_ssize_t tensor;
    unsigned long long offset;  // bytes from where the tensor begins
};

bool put_addresses(const std::vector<Place> &places, Given given, uint64_t *words) {
    for (const Place &place : places) {
        PyObject *x = given[place.tensor];
        Held number = PyLong_Check(x) ? shared(x) : method(x, data_ptr_);
        if (!number) return false;
        words[place.word] = PyLong_AsUnsignedLongLongMask(number.object) + place.offset;
    }
    return !PyErr_Occurred();
}

bool read_places(PyObject *pairs, std::vector<Place> &places) {
    for (Py_ssize_t i = 0; i < PyTuple_Size(pairs); ++i) {
        Place place{};
        PyObject *pair = PyTuple_GetItem(pairs, i);
        if (!PyArg_ParseTuple(pair, "nn|K", &place.word, &place.tensor, &place.offset)) return false;
        places.push_back(place);
    }
    return true;
}

template <class State>
State *state_of(PyObject *capsule) {
    return static_cast<State *>(PyCapsule_GetPointer(capsule, nullptr));
}

template <class State>
void forget(PyObject *capsule) {
    delete state_of<State>(capsule);
}

template <class State>
PyObject *function_of(PyMethodDef &definition, State *state) {
    Held capsule(PyCapsule_New(state, nullptr, forget<State>));
    if (!capsule) {
        delete state;
        return nullptr;
    }
    return PyCFunction_NewEx(&definition, capsule.object, nullptr);
}

bool enough(Py_ssize_t count, Py_ssize_t wanted) {
    if (count == wanted) return true;
    PyErr_Format(PyExc_TypeError, "%zd tensors were given, and %zd are taken", count, wanted);
    return false;
}

// A function of the CPU kernel, with all it takes but the addresses; `threads` comes last.
constexpr size_t MOST = 24;
using Entry = int64_t (*)(void *, const uint64_t *);

template <size_t... I>
int64_t entered(void *function, const uint64_t *words, std::index_sequence<I...>) {
    using Function = int64_t (*)(decltype(static_cast<void>(I), uint64_t{})...);
    return reinterpret_cast<Function>(function)(words[I]...);
}

template <size_t N>
int64_t entry(void *function, const uint64_t *words) {
    return entered(function, words, std::make_index_sequence<N>{});
}

template <size_t... N>
Entry entry_of(size_t count, std::index_sequence<N...>) {
    static constexpr Entry entries[] = {entry<N>...};
    return entries[count];
}

struct Call {
    void *function;
    Entry enter;
    std::vector<uint64_t> words;
    std::vector<Place> places;
    Py_ssize_t tensors;
    Held threads, kept;
};

PyObject *call(PyObject *self, Given given, Py_ssize_t count) {
    const Call *state = state_of<Call>(self);
    if (!state || !enough(count, state->tensors)) return nullptr;
    uint64_t words[MOST];
    std::memcpy(words, state->words.data(), state->words.size() * sizeof(uint64_t));
    if (!put_addresses(state->places, given, words)) return nullptr;
    Held threads(PyObject_CallNoArgs(state->threads.object));
    if (!threads) return nullptr;
    words[state->words.size()] = PyLong_AsUnsignedLongLong(threads.object);
    if (PyErr_Occurred()) return nullptr;
    int64_t failed;
    Py_BEGIN_ALLOW_THREADS
    failed = state->enter(state->function, words);
    Py_END_ALLOW_THREADS
    if (failed) {
        PyErr_SetString(PyExc_MemoryError, "attention needs some rows of memory for each thread, and there is none");
        return nullptr;
    }
    Py_RETURN_NONE;
}

PyMethodDef call_definition = {"call", fast(call), METH_FASTCALL, nullptr};

PyObject *caller(PyObject *, PyObject *given) {
    unsigned long long function;
    const char *words;
    Py_ssize_t size, tensors;
    PyObject *places, *threads, *kept;
    if (!PyArg_ParseTuple(given, "Ky#O!nOO", &function, &words, &size, &PyTuple_Type, &places, &tensors, &threads,
                          &kept)) {
        return nullptr;
    }
    const size_t count = static_cast<size_t>(size) / sizeof(uint64_t);
    if (count + 1 >= MOST) {
        PyErr_SetString(PyExc_ValueError, "more arguments than compiled code is called with");
        return nullptr;
    }
    auto state = new Call{reinterpret_cast<void *>(function),
                          entry_of(count + 1, std::make_index_sequence<MOST>{}),
                          std::vector<uint64_t>(count),
                          {},
                          tensors,
                          shared(threads),
                          shared(kept)};
    std::memcpy(state->words.data(), words, count * sizeof(uint64_t));
    if (!read_places(places, state->places)) {
        delete state;
        return nullptr;
    }
    return function_of(call_definition, state);
}

// A kernel that CUDA's driver launches with a block of parameters; see driver.py.
using LaunchKernel = int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                             void **, void **);
constexpr size_t DESCRIPTOR = 128;  // bytes
constexpr size_t MOST_WORDS = 512;  // 4 KiB, as many as CUDA takes

// Where the TMA descriptor of a tensor goes: those that are known by address, and what makes another.
struct Described {
    Place place;
    Held known, make;
};

struct Launch {
    LaunchKernel launch;
    void *function;
    unsigned programs, threads, memory;
    std::vector<uint64_t> words;
    std::vector<Place> places;
    std::vector<Described> described;
    Py_ssize_t tensors;
    Held stream, device, otherwise;
};

bool put_descriptor(const Described &described, Given given, uint64_t *words) {
    Held address = method(given[described.place.tensor], data_ptr_);
    if (!address) return false;
    PyObject *borrowed = PyDict_GetItemWithError(described.known.object, address.object);
    Held found = borrowed ? shared(borrowed) : Held();
    if (!found && !PyErr_Occurred()) {
        found = Held(PyObject_CallFunctionObjArgs(described.make.object, address.object, nullptr));
    }
    char *bytes = nullptr;
    Py_ssize_t size = 0;
    if (!found || PyBytes_AsStringAndSize(found.object, &bytes, &size) < 0) return false;
    std::memcpy(words + described.place.word, bytes, DESCRIPTOR);
    return true;
}

PyObject *launch(PyObject *self, Given given, Py_ssize_t count) {
    const Launch *state = state_of<Launch>(self);
    if (!state || !enough(count, state->tensors)) return nullptr;
    alignas(64) uint64_t words[MOST_WORDS];
    size_t size = state->words.size() * sizeof(uint64_t);
    std::memcpy(words, state->words.data(), size);
    if (!put_addresses(state->places, given, words)) return nullptr;
    for (const Described &described : state->described) {
        if (!put_descriptor(described, given, words)) return nullptr;
    }
    Held found(PyObject_CallFunctionObjArgs(state->stream.object, state->device.object, nullptr));
    if (!found) return nullptr;
    void *stream = PyLong_AsVoidPtr(found.object);
    if (PyErr_Occurred()) return nullptr;
    // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END
    void *block[] = {reinterpret_cast<void *>(1), words, reinterpret_cast<void *>(2), &size, nullptr};
    int failed;
    Py_BEGIN_ALLOW_THREADS
    failed = state->launch(state->function, state->programs, 1, 1, state->threads, 1, 1, state->memory, stream,
                           nullptr, block);
    Py_END_ALLOW_THREADS
    if (!failed) Py_RETURN_NONE;
    return called(state->otherwise.object, given, count);
}

PyMethodDef launch_definition = {"launch", fast(launch), METH_FASTCALL, nullptr};

PyObject *launcher(PyObject *, PyObject *given) {
    unsigned long long address, function;
    unsigned programs, threads, memory;
    const char *words;
    Py_ssize_t size, tensors;
    PyObject *places, *described, *stream, *device, *otherwise;
    if (!PyArg_ParseTuple(given, "KKIIIy#O!O!nOOO", &address, &function, &programs, &threads, &memory, &words, &size,
                          &PyTuple_Type, &places, &PyTuple_Type, &described, &tensors, &stream, &device,
                          &otherwise)) {
        return nullptr;
    }
    const size_t count = static_cast<size_t>(size) / sizeof(uint64_t);
    if (count > MOST_WORDS) {
        PyErr_SetString(PyExc_ValueError, "more parameters than a kernel takes");
        return nullptr;
    }
    auto state = new Launch{reinterpret_cast<LaunchKernel>(address),
                            reinterpret_cast<void *>(function),
                            programs,
                            threads,
                            memory,
                            std::vector<uint64_t>(count),
                            {},
                            {},
                            tensors,
                            shared(stream),
                            shared(device),
                            shared(otherwise)};
    std::memcpy(state->words.data(), words, count * sizeof(uint64_t));
    bool read = read_places(places, state->places);
    for (Py_ssize_t i = 0; read && i < PyTuple_Size(described); ++i) {
        Place place{};
        PyObject *known, *make;
        PyObject *one = PyTuple_GetItem(described, i);
        read = PyArg_ParseTuple(one, "nnOO", &place.word, &place.tensor, &known, &make) != 0;
        if (read) state->described.push_back({place, shared(known), shared(make)});
    }
    if (!read) {
        delete state;
        return nullptr;
    }
    return function_of(launch_definition, state);
}

PyMethodDef methods[] = {
    {"know", fast(know), METH_FASTCALL, nullptr},
    {"tensor_signature", fast(tensor_signature), METH_FASTCALL, nullptr},
    {"plain_signature", fast(plain_signature), METH_FASTCALL, nullptr},
    {"caller", caller, METH_VARARGS, nullptr},
    {"launcher", launcher, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "compiled", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_compiled() {
    const std::pair<PyObject **, const char *> names[] = {
        {&dtype_, "dtype"},           {&shape_, "shape"},       {&stride_, "stride"},
        {&data_ptr_, "data_ptr"},     {&is_cuda_, "is_cuda"},   {&is_cpu_, "is_cpu"},
        {&get_device_, "get_device"}, {&level_, "_current_level"}, {&requires_grad_, "requires_grad"},
        {&cpu_, "cpu"},               {&cuda_, "cuda"},         {&is_neg_, "is_neg"},
    };
    for (const auto &[to, name] : names) {
        *to = PyUnicode_InternFromString(name);
        if (!*to) return nullptr;
    }
    PyObject *made = PyModule_Create(&module);
    if (made && PyModule_AddStringConstant(made, "SOURCE", SOURCE) < 0) {
        Py_DECREF(made);
        return nullptr;
    }
    return made;
}
