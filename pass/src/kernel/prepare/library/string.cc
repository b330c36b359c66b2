/* `std::string`: the library has the bodies of its members, and the headers say so. Here they are again. */

#include <string>

template class std::allocator<char>;
template class std::basic_string<char>;
