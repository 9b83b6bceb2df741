/** The four figures one asks for first. */
import { SimpleGrid, Stack, Text } from '@mantine/core'
import { renderCount, renderMilliseconds, renderNumber } from '../lib/format.ts'
import type { Sums } from './lines.ts'

const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })

export function Figures({ total }: { readonly total: Sums }) {
  const { requests, errors, latency_ms: latency, first_byte_ms: first } = total
  const failed =
    errors === 0 ? 'none failed' : `${renderNumber(errors)} failed (${percent.format(errors / requests)})`
  const tokens = `${renderNumber(total.prompt_tokens)} in, ${renderNumber(total.completion_tokens)} out`
  const estimated = total.estimated_requests
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md" component="section" aria-label="Together">
      <Figure name="Requests" value={renderNumber(requests)} about={failed} />
      <Figure
        name="Tokens"
        value={renderNumber(total.total_tokens)}
        about={estimated === 0 ? tokens : `${tokens}; ${renderCount(estimated, 'call')} estimated`}
      />
      <Times name="Latency" times={latency} />
      <Times name="Time to first token" times={first} />
    </SimpleGrid>
  )
}

function Times({ name, times }: { readonly name: string; readonly times: Sums['latency_ms'] }) {
  if (times === null) return <Figure name={name} value="–" about="nothing was measured" />
  const about = `p95 ${renderMilliseconds(times.p95)}, p99 ${renderMilliseconds(times.p99)}`
  return <Figure name={name} value={renderMilliseconds(times.p50)} about={about} />
}

function Figure({ name, value, about }: { name: string; value: string; about: string }) {
  return (
    <Stack className="panel" gap={2} p="md">
      <Text size="sm" c="dimmed">
        {name}
      </Text>
      <Text fz={24} fw={600} lh={1.25} className="figure-value">
        {value}
      </Text>
      <Text size="xs" c="dimmed">
        {about}
      </Text>
    </Stack>
  )
}
