/** The other thread: it parses what it is sent, so that no text can hold up the page. */
import type { Root } from 'mdast'
import { parseBlock } from './parse-block.ts'

export interface ParseRequest {
  readonly id: number
  readonly text: string
}

export interface ParseAnswer {
  readonly id: number
  readonly tree: Root | undefined
}

/** Answers every request, in order. */
export function serveParser(scope: Pick<Worker, 'postMessage' | 'addEventListener'>): void {
  scope.addEventListener('message', (event) => {
    const { id, text } = (event as MessageEvent<ParseRequest>).data
    const answer: ParseAnswer = { id, tree: parseBlock(text) }
    scope.postMessage(answer)
  })
}
