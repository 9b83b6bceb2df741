/** Starts services with a tiny in-process model. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { openApp, type TestApp } from './app.ts'
import { type TinyModelOptions, writeTinyModel } from './tiny-model.ts'

/** A service that all tests of a file share, because loading a model takes most of a second. */
export interface LocalModelHarness {
  readonly app: TestApp
  /** The path of the model file. */
  readonly path: string
}

/** Starts the service before a file's tests and closes it after them. */
export function startLocalModelHarness(
  options: TinyModelOptions = {},
  env: Readonly<Record<string, string>> = {},
): LocalModelHarness {
  const path = writeModelFile(options)
  let app: TestApp | undefined
  beforeAll(async () => {
    app = await openApp({ ...localEnvironment(path), ...env })
  })
  afterAll(() => app?.close())
  return {
    get app() {
      if (app === undefined) throw new Error('the service runs only during tests')
      return app
    },
    path,
  }
}

/** Returns settings for an in-process model with one thread, because test machines have few cores. */
export function localEnvironment(path: string): Record<string, string> {
  return { PARLEY_BACKEND: 'local', PARLEY_LOCAL_MODEL: path, PARLEY_LOCAL_THREADS: '1' }
}

/** Writes `tiny.gguf` to a new folder, which is removed after the file's tests; returns its path. */
export function writeModelFile(options: TinyModelOptions = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-model-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'tiny.gguf')
  writeTinyModel(path, options)
  return path
}

/** Returns a chat completion request with temperature 0, whose response is always the same. */
export function greedy(text: string, more: object = {}): Record<string, unknown> {
  return { messages: [{ role: 'user', content: text }], temperature: 0, ...more }
}

export function joinText(events: readonly { choices: readonly { delta: { content?: string } }[] }[]): string {
  return events.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
}
