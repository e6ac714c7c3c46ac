// Catch2 v2 is a header: its implementation and `main` are compiled here, once. Version 3 brings them as a library.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
