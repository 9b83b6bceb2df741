/** Parses configurations from a file that the test writes. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { ConfigError, type ParsedConfig, parseConfig } from '../../src/config/parse.ts'
import { makeFolder } from './process.ts'

/** Writes the file into a folder that is removed after the test; returns its path. */
export async function writeConfigFile(text: string): Promise<string> {
  const path = join(await makeFolder(), 'parley.yaml')
  await writeFile(path, text)
  return path
}

/** Parses the configuration from the file and the environment. */
export async function parseFile(text: string, env: Record<string, string> = {}): Promise<ParsedConfig> {
  return parseConfig({ PARLEY_CONFIG: await writeConfigFile(text), ...env })
}

export async function providersOf(text: string, env: Record<string, string> = {}) {
  return (await parseFile(text, env)).config.providers
}

/** Returns every problem in the file and the environment, with `<file>` for its path. */
export async function problemsOf(text: string, env: Record<string, string> = {}): Promise<string[]> {
  const path = await writeConfigFile(text)
  const error = await parseConfig({ PARLEY_CONFIG: path, ...env }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).problems.map((problem) => problem.replaceAll(path, '<file>'))
}

/** The configuration of a gateway provider. */
export const gateway = (name: string, more: object = {}) => ({
  kind: 'gateway',
  name,
  url: `https://${name}.org/v1`,
  apiKey: undefined,
  ...more,
})
