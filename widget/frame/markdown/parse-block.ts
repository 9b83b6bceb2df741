/** Parses one block of Markdown, within bounds: the text is a model's, and may be meant to do harm. */

import type { Nodes, Root } from 'mdast'
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import { unified } from 'unified'

/** Longer ones are shown as they are. In UTF-16 code units. */
const MAX_BLOCK_LENGTH = 20_000
/** The characters whose pairs are looked for in quadratic time. */
const MAX_MARKS = 2000
const marks = /[*_[>~]/g
const MAX_NODES = 6000
const MAX_DEPTH = 40

const processor = unified().use(remarkParse).use(remarkGfm).freeze()

/** Whether it can be tried at all. */
export function isParseable(text: string): boolean {
  return text.length <= MAX_BLOCK_LENGTH && (text.match(marks)?.length ?? 0) <= MAX_MARKS
}

/** The block as a tree without places; undefined for what is to be shown as it is. */
export function parseBlock(text: string): Root | undefined {
  if (!isParseable(text)) return undefined
  try {
    const tree = processor.parse(text)
    return tidy(tree, { left: MAX_NODES }, 0) ? tree : undefined
  } catch {
    // Too deep for the parser.
    return undefined
  }
}

/** Makes the tree small and safe in place; answers whether it is within bounds. */
function tidy(node: Nodes, nodes: { left: number }, depth: number): boolean {
  nodes.left -= 1
  if (nodes.left < 0 || depth > MAX_DEPTH) return false
  delete node.position
  if (node.type === 'code' || node.type === 'inlineCode') node.value = showControls(node.value)
  if (node.type === 'link') showControlsBelow(node)
  return 'children' in node ? node.children.every((child) => tidy(child, nodes, depth + 1)) : true
}

function showControlsBelow(node: Nodes): void {
  if (node.type === 'text') node.value = showControls(node.value)
  if ('children' in node) for (const child of node.children) showControlsBelow(child)
}

/** What turns the direction of text around, made visible: a link or code must read as it is. */
function showControls(text: string): string {
  return text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd')
}
