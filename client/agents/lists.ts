/** Reads all versions of an agent, page by page. */
import { api, type Outputs } from '../api.ts'

export async function listAllVersions(id: string): Promise<Outputs['agents']['versions']['data']> {
  const all: Outputs['agents']['versions']['data'] = []
  let hasMore = true
  while (hasMore) {
    const page = await api.agents.versions.query({ agent_id: id, before: all.at(-1)?.version })
    all.push(...page.data)
    hasMore = page.has_more === true
  }
  return all
}
