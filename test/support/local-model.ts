/** Services that run the tiny model in their own process. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { openApp, type TestApp } from './app.ts'
import { type TinyModelOptions, writeTinyModel } from './tiny-model.ts'

/** A service with a tiny model, for all tests of a file: opening it takes most of a second. */
export interface LocalStand {
  readonly app: TestApp
  /** The model's file. */
  readonly path: string
}

/** Starts the service before the tests of a file, and stops it after them. */
export function startLocalStand(
  options: TinyModelOptions = {},
  env: Readonly<Record<string, string>> = {},
): LocalStand {
  const path = writeModelFile(options)
  let app: TestApp | undefined
  beforeAll(async () => {
    app = await openApp({ ...localEnvironment(path), ...env })
  })
  afterAll(() => app?.close())
  return {
    get app() {
      if (app === undefined) throw new Error('the service runs during the tests only')
      return app
    },
    path,
  }
}

/** Settings for a model of the process; more than one thread would fight over the few processors of a test machine. */
export function localEnvironment(path: string): Record<string, string> {
  return { PARLEY_BACKEND: 'local', PARLEY_LOCAL_MODEL: path, PARLEY_LOCAL_THREADS: '1' }
}

/** Writes `tiny.gguf` into a folder of its own, which goes with the file's tests. */
export function writeModelFile(options: TinyModelOptions = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-model-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'tiny.gguf')
  writeTinyModel(path, options)
  return path
}

/** A chat that answers the same every time. */
export function greedy(text: string, more: object = {}): Record<string, unknown> {
  return { messages: [{ role: 'user', content: text }], temperature: 0, ...more }
}

/** The text of a streamed answer, put together. */
export function joinText(events: readonly { choices: readonly { delta: { content?: string } }[] }[]): string {
  return events.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
}
