#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/exchange/args.hpp"
#include "core/exchange/reading.hpp"
#include "core/exchange/text/python.hpp"

namespace tidemark::exchange {

/// A test of a parameter's name: whether one of these texts is in it ("^" at its beginning), or none.
struct NameTest {
  std::vector<std::string> texts;
  bool none = false;
  bool is_known() const { return !texts.empty(); }
};

/// What an expression is known to be, and the places that made it so.
struct PyValue {
  enum class Kind {
    kUnknown,
    kNone,
    kBool,
    kInteger,
    kReal,
    kString,
    kList,
    kDict,
    kSymbol,
    kObject,
    kFunction,
    kClass
  };
  Kind kind = Kind::kUnknown;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;            ///< of a string; the dotted name of a symbol: "torch.bfloat16"
  std::vector<PyValue> items;  ///< of lists, tuples and dictionaries
  std::vector<std::string> keys;
  int index = -1;  ///< of objects, functions and classes
  std::vector<Origin> places;
  std::string why;  ///< what makes it only likely
  /// Of what is else unknown: the object that it is a part of, or a parameter of, and which; a parameter's name; a test
  /// of one.
  int part_of = -1;
  std::string part;
  bool names_parameter = false;
  NameTest test;

  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kReal; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_known() const { return kind != Kind::kUnknown && kind != Kind::kSymbol; }
  const PyValue* find(std::string_view key) const;
};

/// A call that the program makes, and what it returns, which keeps the arguments as its fields.
struct PyObject {
  std::string name;                ///< "transformers.AutoModelForCausalLM.from_pretrained"; of a method ".to"
  std::vector<std::string> bases;  ///< of an own class: those it derives from
  std::vector<PyValue> positional;
  std::vector<std::pair<std::string, PyValue>>
      fields;        ///< keywords, attributes that were set; the last of a name counts
  int self = -1;     ///< of a method: the object
  int part_of = -1;  ///< of a method: the object that what it is called of is a part of, and which part
  std::string part;
  Origin place;
  Origin defined;             ///< of an own class: where it stands
  bool from_command = false;  ///< its fields come from the command line
  bool parsed = false;        ///< a parser of arguments made it, of a command that is known or not
  bool unsure = false;        ///< a test that nobody can decide leads to it
  mutable std::set<std::string, std::less<>> asked;  ///< fields that somebody looked at

  /// The field of that name, which is then one that was asked for.
  const PyValue* find(std::string_view key) const;
  /// Whether its name, or a base, ends so, at a dot.
  bool is(std::string_view ending) const;
};

/// A name that was given a value somewhere.
struct PyAssignment {
  std::string name;
  PyValue value;
};

/// Parameters of an object, or of a part of it, are trained from here on, or not.
struct PyFreezing {
  int root = -1;     ///< the object; -1 where nobody knows
  std::string part;  ///< "model.layers"; empty: all of it
  NameTest test;     ///< which of those parameters; unknown: all
  bool trained = false;
  bool is_known = false;  ///< what it is about, and whether it is reached
  Origin place;
};

/// A program of Python as far as reading tells: every statement is followed once, functions when they are called (and
/// those that nobody calls at the end), both sides of a test that nobody can decide. Nothing is run.
class PyProgram {
 public:
  PyProgram(const Source& main, Sources all);

  /// A cell of a notebook, or the whole script.
  void run(std::string_view text, int cell);
  /// A configuration that a notebook writes, as a call that has its keys as keywords; keys without a
  /// line stand in the cell that starts the program.
  void add_document(const Node& node, const std::string& name, int cell, int lines_before, int launch_cell);
  /// Functions that nobody called, with their defaults.
  void run_the_rest();

  /// The flags of a command line that starts this program, by their names without dashes: parsers of arguments then
  /// return them. Before `run`.
  void start_with(const std::deque<Arg>& given);

  std::deque<PyObject> objects;
  std::vector<PyAssignment> assignments;
  std::vector<PyFreezing> freezing;  ///< requires_grad, in order
  std::vector<std::string> flags;    ///< of its command that its own parser takes
  std::vector<std::string> files;    ///< of the program that it could not open: YAML, JSON

  /// Calls of that name, in order.
  std::vector<const PyObject*> calls(std::string_view ending) const;

 private:
  using Kind = PyValue::Kind;
  using Scope = std::map<std::string, PyValue>;
  struct Function {
    const PyStatement* code = nullptr;
    Scope* globals = nullptr;
    std::string file;
    int cell = -1;
    int runs = 0;
  };
  struct Class {
    std::string name;
    std::vector<std::string> bases;
    std::vector<std::pair<std::string, PyValue>> fields;
    std::map<std::string, int> methods;
    Origin place;
  };
  struct Frame {
    Scope* globals = nullptr;
    Scope locals;
    bool own_locals = false;
    PyValue result;
    bool returned = false;
    int unsure = 0;  // open tests that nobody could decide
    NameTest test;   // the one open test of a parameter's name
  };

  /// The command's word for a flag, or null.
  const PyValue* commanded(const std::string& key);
  void run_all(const std::vector<PyStatement>& statements);
  void run_one(const PyStatement& statement);
  void run_if(const PyStatement& statement);
  void run_assign(const PyStatement& statement);
  void run_for(const PyStatement& statement);
  void run_with(const PyStatement& statement);
  void run_import(const PyStatement& statement);
  PyValue made_by_factory(const PyExpr& field);
  void define_class(const PyStatement& statement);
  static void update(PyValue* known, const PyObject& by);
  int define_function(const PyStatement& statement);
  bool import_sibling(const PyStatement& statement);
  Scope* module_of(const std::string& name);

  void run_sides(const NameTest& test, const PyStatement& statement);
  void set_trained(const PyValue& of, const PyValue& value, const Origin& place);
  bool is_unsure() const;
  static PyValue each(const PyValue& all, const PyObject* call);
  static NameTest either(const NameTest& left, const NameTest& right, bool all);

  void assign(const PyExpr& target, const PyValue& value);
  void assign_name(const std::string& name, const PyValue& value);
  PyValue* lookup(const std::string& name);

  PyValue evaluate(const PyExpr& expression);
  PyValue evaluate_plain(const PyExpr& expression);
  PyValue number(const PyExpr& expression) const;
  PyValue attribute(const PyExpr& expression);
  PyValue subscript(const PyExpr& expression);
  PyValue dict(const PyExpr& expression);
  PyValue binary(const PyExpr& expression);
  PyValue compare(const PyExpr& expression);
  PyValue logic(const PyExpr& expression);
  PyValue unary(const PyExpr& expression);
  PyValue choice(const PyExpr& expression);
  PyValue joined(const PyExpr& expression);
  PyValue call(const PyExpr& expression);
  PyValue builtin(const std::string& name, const PyObject& made, bool& done);
  PyValue method(const PyValue& self, const std::string& name, PyObject made);
  PyValue text_method(const PyValue& self, const std::string& name, const PyObject& made);
  PyValue call_function(int index, const PyObject& made, const PyValue* self);
  PyValue instance(int index, PyObject made);
  PyValue parsed_arguments(const PyObject& parser, const std::string& name);
  PyValue document(const std::string& path);
  PyValue keep(PyObject made);

  PyValue symbol(std::string name) const;
  PyValue text_value(std::string text) const;
  Origin place_of(const PyExpr& expression) const;
  /// Whether a value is true; -1 where nobody knows.
  static int truth(const PyValue& value);

  const Source& main_;
  Sources all_;
  std::deque<std::vector<PyStatement>> code_;
  std::deque<Function> functions_;
  std::deque<Class> classes_;
  std::map<std::string, Scope> modules_;
  std::vector<Frame> frames_;
  Scope globals_;
  std::vector<std::pair<std::string, PyValue>> command_;  // the command's flags
  bool commanded_ = false;                                // it is known
  std::string file_;
  int cell_ = -1;
  int depth_ = 0;
  long steps_ = 0;
  bool resting_ = false;  // what nobody called is run
};

/// The value for the request: a symbol by its last word, an object or an unknown as null.
Value to_value(const PyValue& value);

}  // namespace tidemark::exchange
