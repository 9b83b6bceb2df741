/** The checks of `parley doctor` that look at tools that run on the server: the host's module, and MCP servers. */
import type { Config } from '../config.ts'
import type { McpServerConfig } from '../config-mcp.ts'
import { StartupError } from '../startup-error.ts'
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts'

/** Loads the module, as a start does; nothing where there is none. */
export async function checkHostModule({ hooks }: Pick<Config, 'hooks'>): Promise<Finding[]> {
  if (hooks === undefined) return []
  const check = 'host module'
  const { loadHostModule } = await import('../tools/host-module.ts')
  try {
    const { tools, onUploadComplete } = await loadHostModule(hooks)
    const handler = onUploadComplete === undefined ? '' : ', and handles complete uploads'
    return [ok(check, `${hooks} has ${tools.length} tools${handler}`)]
  } catch (error) {
    if (!(error instanceof StartupError)) throw error
    return [fail(check, error.message)]
  }
}

/** Each of them: without it agents miss its tools, and everything else works. */
export function checkMcpServers({ mcp }: Pick<Config, 'mcp'>): Promise<Finding[]> {
  return Promise.all(mcp.map(checkMcpServer))
}

async function checkMcpServer(config: McpServerConfig): Promise<Finding> {
  const check = `mcp ${config.name}`
  const where = config.kind === 'http' ? config.url : config.command
  const { examineMcpServer } = await import('../tools/mcp/examine.ts')
  try {
    return ok(check, `${where} lists ${await examineMcpServer(config)} tools`)
  } catch (error) {
    const setting = `mcp.${config.name} in the file of PARLEY_CONFIG`
    return warn(check, `${where} cannot be used (${reasonOf(error)}); start it, or correct ${setting}`)
  }
}
