/** Parses Markdown in a worker, and gives up on a text that takes too long. */
import type { Root } from 'mdast'
import { isParseable, parseBlock } from './parse-block.ts'

/** A large table takes one second; what takes longer was made to. */
const MAX_MS = 6000

export interface MarkdownParser {
  /** Calls `done` with the tree, or with nothing for a text that is shown as it is. In the order of the calls. */
  readonly parse: (text: string, done: (tree: Root | undefined) => void) => void
}

interface Waiting extends ParseRequest {
  readonly done: (tree: Root | undefined) => void
}

/** A parser that starts its thread with `startWorker` when it is first needed, and parses here where there can be none. */
export function createParser(startWorker: () => Worker): MarkdownParser {
  const waiting: Waiting[] = []
  let worker: Worker | undefined
  let canStart = true
  let timer: ReturnType<typeof setTimeout> | undefined
  let lastId = 0

  function start(): void {
    try {
      worker = startWorker()
      worker.onmessage = ({ data }: MessageEvent<ParseAnswer>) => settle(data.id, data.tree)
      worker.onerror = giveUpWorker
    } catch {
      giveUpWorker()
    }
  }

  function giveUpWorker(): void {
    canStart = false
    worker?.terminate()
    worker = undefined
    for (const { done, text } of waiting.splice(0)) done(parseBlock(text))
  }

  function next(): void {
    clearTimeout(timer)
    const [first] = waiting
    if (first === undefined) return
    const { id, text } = first
    timer = setTimeout(() => {
      worker?.terminate()
      worker = undefined
      settle(id, undefined)
    }, MAX_MS)
    if (worker === undefined) start()
    worker?.postMessage({ id, text } satisfies ParseRequest)
  }

  function settle(id: number, tree: Root | undefined): void {
    if (waiting[0]?.id !== id) return
    const { done } = waiting.shift() as Waiting
    next()
    done(tree)
  }

  return {
    parse(text, done) {
      if (!isParseable(text)) return done(undefined)
      if (!canStart) return done(parseBlock(text))
      lastId += 1
      waiting.push({ id: lastId, text, done })
      if (waiting.length === 1) next()
    },
  }
}

interface ParseRequest {
  readonly id: number
  readonly text: string
}

interface ParseAnswer {
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

/** Whether this is the thread, not the page. */
export const isWorker = typeof document === 'undefined'

interface ScriptPolicy {
  createScriptURL(url: string): string
}

interface PolicyFactory {
  createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy
}

/** Starts the thread. @throws where the browser refuses. */
export function startOwnWorker(): Worker {
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory }
  policy ??= trustedTypes?.createPolicy('parley-own-script', { createScriptURL: () => import.meta.url })
  // A trusted address stands for a string in every place that takes one.
  return new Worker(policy === undefined ? import.meta.url : policy.createScriptURL(''), { type: 'module' })
}

let policy: ScriptPolicy | undefined
