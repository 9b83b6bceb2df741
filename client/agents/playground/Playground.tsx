/** Shows a chat with the draft, and optionally one with the saved version for comparison. */
import {
  ActionIcon,
  Button,
  Group,
  ScrollArea,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  Textarea,
  Title,
} from '@mantine/core'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { MockNotice } from '../../first-run/MockNotice.tsx'
import { Icon } from '../../shell/icons.tsx'
import { ReplyView } from './ReplyView.tsx'
import type { Side } from './reply.ts'
import {
  type Playground,
  type PlaygroundSubject,
  type PlaygroundTurn,
  usePlayground,
} from './use-playground.ts'

interface PlaygroundPanelProps {
  readonly subject: PlaygroundSubject
  /** The reason why the draft cannot be tried now. */
  readonly obstacle: string | undefined
}

export function PlaygroundPanel({ subject, obstacle }: PlaygroundPanelProps) {
  const playground = usePlayground(subject)
  const [isComparing, setIsComparing] = useState(false)
  const sides: readonly Side[] = isComparing ? ['draft', 'published'] : ['draft']
  return (
    <Stack gap={0} className="playground-panel" component="section" aria-label="Try it">
      <Group justify="space-between" p="sm" className="playground-head">
        <Title order={2}>Try it</Title>
        <Group gap="sm">
          {subject.agentId === undefined ? null : (
            <Switch
              size="sm"
              label="Compare with saved version"
              checked={isComparing}
              onChange={(event) => setIsComparing(event.currentTarget.checked)}
            />
          )}
          <Button
            variant="subtle"
            color="gray"
            size="compact-sm"
            disabled={playground.turns.length === 0}
            onClick={playground.clear}
          >
            Clear
          </Button>
        </Group>
      </Group>
      <Conversation playground={playground} />
      <div className="playground-notice">
        <MockNotice />
      </div>
      <Question playground={playground} sides={sides} obstacle={obstacle} />
    </Stack>
  )
}

function Conversation({ playground }: { readonly playground: Playground }) {
  const end = useRef<HTMLDivElement>(null)
  const { turns } = playground
  // biome-ignore lint/correctness/useExhaustiveDependencies: every change of the conversation scrolls to its end
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'nearest' })
  }, [turns])
  return (
    <ScrollArea
      className="playground-turns"
      viewportProps={{ tabIndex: 0, 'aria-label': 'Conversation', role: 'log' }}
    >
      <Stack gap="md" p="sm">
        {turns.length === 0 ? (
          <Text size="sm" c="dimmed" ta="center" py="xl">
            Send a message to try the current draft. You do not have to save it first.
          </Text>
        ) : null}
        {turns.map((turn) => (
          <Turn key={turn.id} turn={turn} playground={playground} />
        ))}
        <div ref={end} />
      </Stack>
    </ScrollArea>
  )
}

const sideNames = { draft: 'Draft', published: 'Saved version' } as const

function Turn({ turn, playground }: { readonly turn: PlaygroundTurn; readonly playground: Playground }) {
  const replies = (['draft', 'published'] as const).flatMap((side) => {
    const reply = turn.replies[side]
    return reply === undefined ? [] : [{ side, reply }]
  })
  return (
    <Stack gap="xs">
      <Text size="sm" className="playground-question">
        {turn.question}
      </Text>
      <SimpleGrid cols={replies.length} spacing="sm">
        {replies.map(({ side, reply }) => (
          <Stack key={side} gap={4}>
            {replies.length === 1 ? null : (
              <Text size="xs" fw={500} c="dimmed">
                {sideNames[side]}
              </Text>
            )}
            <ReplyView reply={reply} onResults={(results) => playground.answer(turn.id, side, results)} />
          </Stack>
        ))}
      </SimpleGrid>
    </Stack>
  )
}

interface QuestionProps {
  readonly playground: Playground
  readonly sides: readonly Side[]
  readonly obstacle: string | undefined
}

function Question({ playground, sides, obstacle }: QuestionProps) {
  const [text, setText] = useState('')
  const canAsk = text.trim() !== '' && obstacle === undefined && !playground.isRunning
  const ask = () => {
    if (!canAsk) return
    playground.ask(text.trim(), sides)
    setText('')
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    ask()
  }
  return (
    <Stack gap={4} p="sm" className="playground-input">
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <Textarea
          aria-label="Message"
          placeholder="Write a message"
          autosize
          minRows={1}
          maxRows={6}
          flex={1}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {playground.isRunning ? (
          <ActionIcon size={36} variant="default" aria-label="Stop" onClick={playground.stop}>
            <Icon name="stop" />
          </ActionIcon>
        ) : (
          <ActionIcon size={36} aria-label="Send" disabled={!canAsk} onClick={ask}>
            <Icon name="send" />
          </ActionIcon>
        )}
      </Group>
      {obstacle === undefined ? null : (
        <Text size="xs" c="dimmed">
          {obstacle}
        </Text>
      )}
    </Stack>
  )
}
