/** Shows one answer in the playground: text, tool calls, tokens and timing. */
import { Alert, Badge, Box, Button, Code, Group, Loader, Stack, Text, Textarea } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { renderCount, renderMilliseconds, renderNumber } from '../../format.ts'
import { Icon } from '../../shell/icons.tsx'
import type { Call, Reply } from './reply.ts'

interface ReplyViewProps {
  readonly reply: Reply
  readonly onResults: (results: Readonly<Record<string, string>>) => void
}

export function ReplyView({ reply, onResults }: ReplyViewProps) {
  const { status, text, calls, problem } = reply
  return (
    <Stack gap="xs" className="playground-reply">
      {calls.map((call) => (
        <CallView key={call.id} call={call} />
      ))}
      {status === 'waiting' ? <ResultsForm calls={reply.round.calls} onResults={onResults} /> : null}
      {text === '' ? null : (
        <Text size="sm" className="playground-text">
          {text}
        </Text>
      )}
      {status === 'running' && text === '' ? <Loader size="xs" type="dots" aria-label="Answering" /> : null}
      {problem === undefined ? null : (
        <Alert color="red" role="alert" p="xs">
          {problem}
        </Alert>
      )}
      <Facts reply={reply} />
    </Stack>
  )
}

function CallView({ call: { name, argumentsText, result } }: { readonly call: Call }) {
  return (
    <Box className="playground-call">
      <Group gap={6} wrap="nowrap">
        <Icon name="tool" size={14} />
        <Text size="xs" ff="monospace" fw={500}>
          {name}
        </Text>
      </Group>
      <Code block mt={4} className="playground-code" aria-label={`Arguments of ${name}`}>
        {prettify(argumentsText)}
      </Code>
      {result === undefined ? null : (
        <>
          <Text size="xs" c="dimmed" mt={4}>
            Result
          </Text>
          <Code block className="playground-code" aria-label={`Result of ${name}`}>
            {prettify(result)}
          </Code>
        </>
      )}
    </Box>
  )
}

/** Asks the user for results of client-side tools, because the playground cannot run them. */
function ResultsForm({
  calls,
  onResults,
}: {
  readonly calls: readonly Call[]
  readonly onResults: ReplyViewProps['onResults']
}) {
  const [results, setResults] = useState<Readonly<Record<string, string>>>({})
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onResults(results)
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="xs">
        {calls.map(({ id, name }) => (
          <Textarea
            key={id}
            label={`Result of ${name}`}
            description="This tool runs in the client. Enter a result for it."
            classNames={{ input: 'code-input' }}
            autosize
            minRows={1}
            value={results[id] ?? ''}
            onChange={(event) => setResults({ ...results, [id]: event.currentTarget.value })}
          />
        ))}
        <Group justify="flex-end">
          <Button type="submit" size="xs" variant="light">
            Send result
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

function Facts({ reply }: { readonly reply: Reply }) {
  const { answering, promptTokens, completionTokens, firstTokenMs, totalMs, status } = reply
  if (status === 'running') return null
  const facts = [
    answering === undefined ? undefined : `${answering.provider}/${answering.model}`,
    promptTokens + completionTokens === 0
      ? undefined
      : `${renderNumber(promptTokens)} + ${renderNumber(completionTokens)} tokens`,
    firstTokenMs === undefined ? undefined : `first token ${renderMilliseconds(firstTokenMs)}`,
    `${renderMilliseconds(totalMs)} total`,
    answering === undefined || answering.attempts <= 1
      ? undefined
      : renderCount(answering.attempts, 'attempt'),
  ].filter((fact) => fact !== undefined)
  return (
    <Group gap={6} aria-label="Answer details" role="group">
      {status === 'stopped' ? (
        <Badge color="gray" variant="default" size="sm">
          Stopped
        </Badge>
      ) : null}
      {answering?.isFallback ? (
        <Badge variant="default" size="sm">
          Fallback
        </Badge>
      ) : null}
      <Text size="xs" c="dimmed">
        {facts.join(' · ')}
      </Text>
    </Group>
  )
}

/** Indents JSON; returns any other text unchanged. */
function prettify(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
