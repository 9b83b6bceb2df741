/** Parses Markdown in a worker, and stops if a text takes too long. */
import type { Root } from 'mdast'
import { isParseable } from './parse-limits.ts'

/**
 * Maximum time to parse one text, in milliseconds. A large table takes one second; text that exceeds the
 * limit is probably malicious.
 */
const MAX_MS = 6000

export interface MarkdownParser {
  /**
   * Calls `done` with the tree, or with undefined if the text must be shown as plain text. Answers texts that
   * exceed the limits immediately, and all others in order.
   */
  readonly parse: (text: string, done: (tree: Root | undefined) => void) => void
}

interface Waiting extends ParseRequest {
  readonly done: (tree: Root | undefined) => void
}

/**
 * Creates a parser that starts a worker on first use. Parses on this thread if the worker cannot start or
 * fails.
 */
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
    for (const { done, text } of waiting.splice(0)) parseHere(text, done)
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
      if (!canStart) return parseHere(text, done)
      lastId += 1
      waiting.push({ id: lastId, text, done })
      if (waiting.length === 1) next()
    },
  }
}

export interface ParseRequest {
  readonly id: number
  readonly text: string
}

export interface ParseAnswer {
  readonly id: number
  readonly tree: Root | undefined
}

interface ScriptPolicy {
  createScriptURL(url: string): string
}

interface PolicyFactory {
  createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy
}

/**
 * Parses on this thread, in the order of the calls. Loads the parser, which otherwise only the worker needs.
 */
function parseHere(text: string, done: (tree: Root | undefined) => void): void {
  void import('./parse-block.ts').then(
    ({ parseBlock }) => done(parseBlock(text)),
    () => done(undefined),
  )
}

/**
 * Starts the worker, whose address the server writes into the document. @throws if the browser does not allow
 * it
 */
export function startWorker(): Worker {
  const address = document.documentElement.dataset.worker ?? ''
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory }
  policy ??= trustedTypes?.createPolicy('parley-own-script', { createScriptURL: () => address })
  // `Worker` accepts a TrustedScriptURL, although its type declares a string.
  return new Worker(policy === undefined ? address : policy.createScriptURL(''), { type: 'module' })
}

let policy: ScriptPolicy | undefined
