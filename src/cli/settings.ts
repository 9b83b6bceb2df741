/** The settings a command runs with, read the same way by all of them. */
import { type Config, loadConfig } from '../config.ts'
import { printNotice } from './output.ts'

/**
 * The configuration; what its operator should know of it is told on standard error.
 * @throws ConfigError
 */
export async function readSettings(): Promise<Config> {
  const { config, warnings } = await loadConfig()
  for (const warning of warnings) printNotice(`warning: ${warning}`)
  return config
}
