/** Parses one block of Markdown within limits, because the model's text may be malicious. */

import type { Nodes, Root } from 'mdast'
import remarkGfm from 'remark-gfm'
import remarkParse from 'remark-parse'
import { unified } from 'unified'
import { isParseable } from './parse-limits.ts'

const MAX_NODES = 6000
const MAX_DEPTH = 40

const processor = unified().use(remarkParse).use(remarkGfm).freeze()

/** Returns the block's tree without positions, or undefined if the block must be shown as plain text. */
export function parseBlock(text: string): Root | undefined {
  if (!isParseable(text)) return undefined
  try {
    const tree = processor.parse(text)
    return tidy(tree, { left: MAX_NODES }, 0) ? tree : undefined
  } catch {
    // Deep nesting makes the parser throw.
    return undefined
  }
}

/**
 * Removes positions and makes control characters visible, in place; returns whether the tree is within the
 * limits.
 */
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

/** Makes bidirectional control characters visible, because they could disguise links and code. */
function showControls(text: string): string {
  return text.replaceAll(/[\u202a-\u202e\u2066-\u2069]/g, '\ufffd')
}
