/** All tools that run on the server, by name: the host's, then those of MCP servers. */
import type { ServerTool, Toolbox } from './tool.ts'

/** A toolbox of the host's tools and another's; the host's win. Decision: 7 (Tools). */
export function createToolbox(hostTools: readonly ServerTool[], others: Toolbox = noTools): Toolbox {
  const byName = new Map(hostTools.map((tool) => [tool.name, tool]))
  let [known, all] = join(others.list())

  function join(listed: readonly ServerTool[]): [readonly ServerTool[], readonly ServerTool[]] {
    return [listed, [...hostTools, ...listed.filter(({ name }) => !byName.has(name))]]
  }

  return {
    find: (name) => byName.get(name) ?? others.find(name),
    list() {
      const listed = others.list()
      if (listed !== known) [known, all] = join(listed)
      return all
    },
    health: () => others.health(),
    close: () => others.close(),
  }
}

const noList: readonly ServerTool[] = []
const noTools: Toolbox = {
  find: () => undefined,
  list: () => noList,
  health: () => ({}),
  close: async () => {},
}
