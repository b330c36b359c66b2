/* The trees and lists of libstdc++: the functions on nodes that its headers leave to the library. They move pointers, and
   know nothing of what the nodes hold. The header of a tree has the root as its parent, and the first and last node to
   its left and right. */

typedef struct node {
  int black;
  struct node *parent, *left, *right;
} node;

#define AS(name) __asm__(name)

static node *first(node *n) {
  while (n->left) n = n->left;
  return n;
}

static node *last(node *n) {
  while (n->right) n = n->right;
  return n;
}

static node *after(node *n) {
  if (n->right) return first(n->right);
  node *up = n->parent;
  while (n == up->right) {
    n = up;
    up = up->parent;
  }
  // From the last node of a tree whose root has no right side, the loop ends at the header itself.
  return n->right == up ? n : up;
}

static node *before(node *n) {
  // The header leads to the last node.
  if (!n->black && n->parent && n->parent->parent == n) return n->right;
  if (n->left) return last(n->left);
  node *up = n->parent;
  while (n == up->left) {
    n = up;
    up = up->parent;
  }
  return up;
}

node *increment(node *n) AS("_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base");
node *increment(node *n) { return after(n); }
const node *const_increment(const node *n) AS("_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base");
const node *const_increment(const node *n) { return after((node *)n); }
node *decrement(node *n) AS("_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base");
node *decrement(node *n) { return before(n); }
const node *const_decrement(const node *n) AS("_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base");
const node *const_decrement(const node *n) { return before((node *)n); }

/* Lets `by` hang where `n` hung. */
static void replace(node *header, node *n, node *by) {
  if (header->parent == n)
    header->parent = by;
  else if (n->parent->left == n)
    n->parent->left = by;
  else
    n->parent->right = by;
  if (by) by->parent = n->parent;
}

/* Lifts a child of `n`, the right one or the left one, into its place. */
static void rotate(node *header, node *n, int right_up) {
  node *up = right_up ? n->right : n->left, *middle = right_up ? up->left : up->right;
  replace(header, n, up);
  if (right_up) {
    n->right = middle;
    up->left = n;
  } else {
    n->left = middle;
    up->right = n;
  }
  if (middle) middle->parent = n;
  n->parent = up;
}

void insert(_Bool left, node *n, node *parent, node *header)
    AS("_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_");
void insert(_Bool left, node *n, node *parent, node *header) {
  n->parent = parent;
  n->left = n->right = 0;
  n->black = 0;
  if (left) {
    if (parent == header) {
      header->parent = header->right = n;
      header->left = n;
    } else {
      parent->left = n;
      if (parent == header->left) header->left = n;
    }
  } else {
    parent->right = n;
    if (parent == header->right) header->right = n;
  }
  while (n != header->parent && !n->parent->black) {
    node *p = n->parent, *above = p->parent;
    int on_left = p == above->left;
    node *uncle = on_left ? above->right : above->left;
    if (uncle && !uncle->black) {
      p->black = uncle->black = 1;
      above->black = 0;
      n = above;
      continue;
    }
    if (n == (on_left ? p->right : p->left)) {
      rotate(header, p, on_left);
      n = p;
      p = n->parent;
    }
    p->black = 1;
    above->black = 0;
    rotate(header, above, !on_left);
  }
  header->parent->black = 1;
}

node *erase(node *gone, node *header) AS("_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_");
node *erase(node *gone, node *header) {
  if (header->left == gone) header->left = gone->right ? first(gone->right) : gone->parent;
  if (header->right == gone) header->right = gone->left ? last(gone->left) : gone->parent;
  node *n, *parent;
  int black = gone->black;
  if (!gone->left || !gone->right) {
    n = gone->left ? gone->left : gone->right;
    parent = gone->parent;
    replace(header, gone, n);
  } else {
    // The next node takes its place and its colour.
    node *next = first(gone->right);
    black = next->black;
    n = next->right;
    parent = next->parent;
    if (parent == gone) {
      parent = next;
    } else {
      replace(header, next, n);
      next->right = gone->right;
      next->right->parent = next;
    }
    replace(header, gone, next);
    next->left = gone->left;
    next->left->parent = next;
    next->black = gone->black;
  }
  if (!black) return gone;
  while (n != header->parent && (!n || n->black)) {
    int on_left = n == parent->left;
    node *other = on_left ? parent->right : parent->left;
    if (!other->black) {
      other->black = 1;
      parent->black = 0;
      rotate(header, parent, on_left);
      other = on_left ? parent->right : parent->left;
    }
    node *near = on_left ? other->left : other->right, *far = on_left ? other->right : other->left;
    if ((!near || near->black) && (!far || far->black)) {
      other->black = 0;
      n = parent;
      parent = n->parent;
      continue;
    }
    if (!far || far->black) {
      near->black = 1;
      other->black = 0;
      rotate(header, other, !on_left);
      other = near;
      far = on_left ? other->right : other->left;
    }
    other->black = parent->black;
    parent->black = 1;
    far->black = 1;
    rotate(header, parent, on_left);
    break;
  }
  if (n) n->black = 1;
  return gone;
}

typedef struct link {
  struct link *next, *previous;
} link_;

void hook(link_ *n, link_ *at) AS("_ZNSt8__detail15_List_node_base7_M_hookEPS0_");
void hook(link_ *n, link_ *at) {
  n->next = at;
  n->previous = at->previous;
  at->previous->next = n;
  at->previous = n;
}

void unhook(link_ *n) AS("_ZNSt8__detail15_List_node_base9_M_unhookEv");
void unhook(link_ *n) {
  n->previous->next = n->next;
  n->next->previous = n->previous;
}

void transfer(link_ *at, link_ *from, link_ *end) AS("_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_");
void transfer(link_ *at, link_ *from, link_ *end) {
  if (at == end) return;
  link_ *tail = end->previous, *head = at->previous;
  from->previous->next = end;
  end->previous = from->previous;
  head->next = from;
  from->previous = head;
  tail->next = at;
  at->previous = tail;
}

void reverse(link_ *list) AS("_ZNSt8__detail15_List_node_base10_M_reverseEv");
void reverse(link_ *list) {
  link_ *n = list;
  do {
    link_ *next = n->next;
    n->next = n->previous;
    n->previous = next;
    n = next;
  } while (n != list);
}

void swap(link_ *a, link_ *b) AS("_ZNSt8__detail15_List_node_base4swapERS0_S1_");
void swap(link_ *a, link_ *b) {
  link_ *a_next = a->next, *a_previous = a->previous, *b_next = b->next, *b_previous = b->previous;
  int a_empty = a_next == a, b_empty = b_next == b;
  a->next = b_empty ? a : b_next;
  a->previous = b_empty ? a : b_previous;
  b->next = a_empty ? b : a_next;
  b->previous = a_empty ? b : a_previous;
  a->next->previous = a->previous->next = a;
  b->next->previous = b->previous->next = b;
}
