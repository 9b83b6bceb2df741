/** Writes and parses configuration files. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { ConfigError, type ParsedConfig, parseConfig } from '../../src/config/parse.ts'
import { makeFolder } from './process.ts'

/** Writes a configuration file that is removed after the test; returns its path. */
export async function writeConfigFile(text: string): Promise<string> {
  const path = join(await makeFolder(), 'parley.yaml')
  await writeFile(path, text)
  return path
}

/** Parses the configuration from a file with this text and from environment variables. */
export async function parseFile(text: string, env: Record<string, string> = {}): Promise<ParsedConfig> {
  return parseConfig({ PARLEY_CONFIG: await writeConfigFile(text), ...env })
}

export async function providersOf(text: string, env: Record<string, string> = {}) {
  return (await parseFile(text, env)).config.providers
}

/** Returns all problems in the configuration, with `<file>` in place of the file's path. */
export async function problemsOf(text: string, env: Record<string, string> = {}): Promise<string[]> {
  const path = await writeConfigFile(text)
  const error = await parseConfig({ PARLEY_CONFIG: path, ...env }).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(ConfigError)
  return (error as ConfigError).problems.map((problem) => problem.replaceAll(path, '<file>'))
}

/** Returns the configuration of a gateway provider. */
export const gateway = (name: string, more: object = {}) => ({
  kind: 'gateway',
  name,
  url: `https://${name}.org/v1`,
  apiKey: undefined,
  ...more,
})
