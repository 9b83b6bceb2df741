/** Parses Markdown in a worker, so that a long text does not block the window, and colors its code. */
import type { Code, Nodes, Root } from 'mdast'
import { parseBlock } from './parse-block.ts'
import type { ParseAnswer, ParseRequest } from './parser.ts'

const scope = globalThis as unknown as Pick<Worker, 'postMessage' | 'addEventListener'>

/**
 * Settles after the last request. Requests are answered in order, even if one of them has to load the colors.
 */
let last: Promise<void> = Promise.resolve()

scope.addEventListener('message', (event) => {
  const { id, text } = (event as MessageEvent<ParseRequest>).data
  last = last.then(async () => {
    const tree = parseBlock(text)
    if (tree !== undefined) await colorCode(tree)
    scope.postMessage({ id, tree } satisfies ParseAnswer)
  })
})

/** Adds colors to the code blocks; leaves them uncolored if the colors cannot be loaded. */
async function colorCode(tree: Root): Promise<void> {
  const blocks = listCode(tree)
  if (blocks.length === 0) return
  try {
    const { highlight } = await import('./highlight.ts')
    for (const block of blocks) {
      // Adds the line break that uncolored code ends with, because copied code contains it.
      const children = highlight(`${block.value}\n`, block.lang ?? '')
      if (children !== undefined) block.data = { ...block.data, hChildren: children }
    }
  } catch {
    // The next block tries to load the colors again.
  }
}

function listCode(node: Nodes): Code[] {
  if (node.type === 'code') return node.lang ? [node] : []
  return 'children' in node ? node.children.flatMap(listCode) : []
}
