/** NestJS 12, in a package of its own: its parts find each other as peers, so that no alias can stand beside NestJS 11. */
export { Module } from '@nestjs/common'
export { NestFactory } from '@nestjs/core'
