/** Tests how log lines are written to a file, even on a full disk. */
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createLogOutput } from '../../src/telemetry/log-output.ts'
import { makeFolder } from '../support/process.ts'

function open(path: string): number {
  const fd = openSync(path, 'a')
  onTestFinished(() => closeSync(fd))
  return fd
}

test('log lines are written in order', async () => {
  const path = join(await makeFolder(), 'log')
  const output = createLogOutput(open(path))
  const lines = Array.from({ length: 500 }, (_, index) => `line ${index}\n`)
  for (const line of lines) output.write(line)
  await expect.poll(() => readFileSync(path, 'utf8')).toBe(lines.join(''))
})

test('flushSync writes pending log lines immediately', async () => {
  const path = join(await makeFolder(), 'log')
  const output = createLogOutput(open(path))
  for (const line of ['one\n', 'two\n', 'three\n']) output.write(line)
  output.flushSync()
  expect(readFileSync(path, 'utf8')).toContain('two\nthree\n')
})

test('log lines beyond the buffer limit are dropped, and a log line reports their number', async () => {
  const path = join(await makeFolder(), 'log')
  const output = createLogOutput(open(path), 1)
  for (const line of ['one\n', 'two\n', 'three\n', 'four\n']) output.write(line)
  await expect.poll(() => readFileSync(path, 'utf8')).toMatch(/^one\ntwo\n.*"dropped":2/)
})

test('writing log lines to a full disk neither throws nor blocks', () => {
  const output = createLogOutput(open('/dev/full'))
  for (let count = 0; count < 3; count++) output.write('lost\n')
  output.flushSync()
})
